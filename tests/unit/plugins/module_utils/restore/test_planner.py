from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import ClaimStore, Destination
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import (
    HELD_BY,
    MADE_BY,
    RESTORED,
    Cluster,
    Storage,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.api.restore import Restore, Snapshot
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.jobs import Ended, Job
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Action, Plan, Ref
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Phase as BasePhase
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.plan import (
    Claim,
    CreateObjects,
    DeleteJobs,
    FetchSnapshot,
    HoldCluster,
    Observation,
    Phase,
    Reason,
    ReleaseCluster,
    RemoveCluster,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.planner import (
    abandoned,
    first_of,
    gone,
    plan,
    status,
)

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SNAPSHOT = Snapshot(
    Destination(claim=ClaimStore("disk")), "example/one.db", version="3.6.16", beside={"claim": {"name": "disk"}}
)
NEW = Restore("back", "ns", "restore-uid", 1, "fresh", False, snapshot=SNAPSHOT, template={"version": "3.6.16"})
IN_PLACE = replace(NEW, cluster="example", in_place=True, template={})
CLUSTER = Cluster("fresh", "ns", "cluster-uid", 1, 3, "3.6.16")
CHECKED = json.dumps({"hash": 255, "revision": 7, "totalKey": 9, "version": "3.6.0"})
SERVING = Job(NOW, False, "", pod="pod", address="10.0.0.9", running=True, ended={"check": Ended(0, "")})
COMPLETE, ACTIVE = Job(NOW, True, ""), Job(NOW, False, "")
FAILED = Job(NOW, False, "BackoffLimitExceeded", pod="pod", ended={"prepare": Ended(1, '{"error": "no room"}')})
COPIED = {"phase": "Succeeded", "clusterID": "old"}
MEMBERS = [{"name": "example-0", "role": "leader", "healthy": True}]


class World:
    """What the API server would keep. The operator's actions are done at once, all else is done by the test."""

    def __init__(self, restore: Restore, cluster: Cluster, **seen: Any) -> None:
        self.restore, self.cluster = restore, cluster
        self.status: dict[str, Any] = {}
        self.seen = Observation(NOW, "operator:1", SNAPSHOT, cluster=cluster, **seen)
        self.phases: list[BasePhase] = []
        self.actions: list[Action | None] = []

    def reconcile(self, **seen: Any) -> Plan:
        self.seen = replace(self.seen, **seen)
        planned = plan(self.restore, self.seen, self.status)
        told = status(self.restore, self.seen, planned, self.status)
        self.status = {key: value for key, value in (self.status | told).items() if value is not None}
        if not self.phases or self.phases[-1] is not planned.phase:
            self.phases.append(planned.phase)
        self.actions.append(planned.action)
        self._act(planned.action)
        return planned

    def _act(self, action: Action | None) -> None:
        match action:
            case FetchSnapshot():
                self.seen = replace(self.seen, source=ACTIVE)
            case CreateObjects(objects):
                for each in objects:
                    self._create(each)
            case DeleteJobs(jobs):
                gone = {job.name for job in jobs}
                kept = {name: job for name, job in self.seen.jobs.items() if name not in gone}
                source = None if "back-source" in gone else self.seen.source
                self.seen = replace(self.seen, jobs=kept, source=source)
            case RemoveCluster(cluster, claims):
                assert self.seen.resource
                assert self.seen.resource["metadata"]["uid"] == cluster.uid
                gone = {claim.name for claim in claims}
                left = {name: each for name, each in self.seen.claims.items() if name not in gone}
                self.seen = replace(self.seen, resource=None, claims=left)
            case HoldCluster(_, version, annotations):
                assert version == self.seen.resource_version
                self.annotate(annotations)
            case ReleaseCluster(_, version, annotations):
                assert version == self.seen.resource_version
                self.annotate(annotations)
                self.cluster_status(clusterID=None)

    def _create(self, manifest: Manifest) -> None:
        name, seen = manifest["metadata"]["name"], self.seen
        match manifest["kind"]:
            case "Job":
                self.seen = replace(seen, jobs={**seen.jobs, name: ACTIVE})
            case "PersistentVolumeClaim":
                self.seen = replace(seen, claims={**seen.claims, name: Claim(f"uid-of-{name}", "cluster-uid")})
            case "EtcdCluster":
                meta = {**manifest["metadata"], "uid": "cluster-uid"}
                self.seen = replace(seen, resource={**manifest, "metadata": meta})
            case "EtcdBackup":
                self.seen = replace(seen, backup={})

    def annotate(self, wanted: dict[str, str | None]) -> None:
        assert self.seen.resource
        have = {key: value for key, value in (self.seen.annotations | wanted).items() if value is not None}
        meta = {**self.seen.resource["metadata"], "annotations": have, "resourceVersion": str(len(self.actions))}
        self.seen = replace(self.seen, resource={**self.seen.resource, "metadata": meta})

    def cluster_status(self, **changed: Any) -> None:
        assert self.seen.resource
        self.seen = replace(self.seen, resource={**self.seen.resource, "status": self.seen.status | changed})

    def finish(self, verb: str, job: Job = COMPLETE) -> None:
        """All of them, or one: putback-1."""
        self.seen = replace(self.seen, jobs={k: job if f"-{verb}" in k else v for k, v in self.seen.jobs.items()})


def _created(planned: Plan) -> tuple[Manifest, ...]:
    assert isinstance(planned.action, CreateObjects), planned
    return planned.action.objects


def _in_place() -> World:
    resource = {"metadata": {"name": "example"}, "status": {"phase": "Running", "clusterID": "old", "members": MEMBERS}}
    claims = {f"data-example-{number}": Claim(f"claim-{number}", "cluster-uid") for number in range(3)}
    return World(IN_PLACE, replace(CLUSTER, name="example"), resource=resource, claims=claims, stopped=False)


def _until_restoring(world: World) -> Plan:
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    world.reconcile(backup=COPIED)
    world.cluster_status(phase="Restoring")
    return world.reconcile(stopped=True)


def _settings(job: dict[str, Any], prefix: str) -> dict[str, str]:
    """Of its first container."""
    env = job["spec"]["template"]["spec"]["initContainers"][0]["env"]
    return {each["name"]: each["value"] for each in env if each["name"].startswith(prefix)}


def test_restore_into_a_new_cluster_succeeds() -> None:
    world = World(NEW, CLUSTER)
    first = world.reconcile()
    assert isinstance(first.action, FetchSnapshot)
    assert [each["metadata"]["name"] for each in first.action.objects] == ["back-source"]
    world.reconcile(source=replace(SERVING, running=False))
    (made,) = _created(world.reconcile(source=SERVING, check_log=CHECKED))
    assert (made["kind"], made["spec"]) == ("EtcdCluster", {"version": "3.6.16"})
    assert made["metadata"]["annotations"] == {HELD_BY: "back", MADE_BY: "restore-uid"}
    restoring = world.reconcile()
    created = _created(restoring)
    assert [each["kind"] for each in created] == ["PersistentVolumeClaim"] * 3 + ["Job"] * 3
    assert created[0]["metadata"]["labels"]["etcdops.dev/cluster-uid"] == "cluster-uid"
    assert world.reconcile().action is None
    world.finish("member")
    assert isinstance(world.reconcile().action, ReleaseCluster)
    assert world.seen.annotations == {MADE_BY: "restore-uid", RESTORED: "3"}
    assert world.reconcile().phase is Phase.STARTING
    world.cluster_status(phase="Running", clusterID="new")
    assert world.reconcile().phase is Phase.SUCCEEDED
    assert world.status["clusterID"] == "new"
    assert (world.status["revision"], world.status["size"]) == (7, 3)
    world.reconcile()
    assert (world.seen.source, world.seen.jobs) == (None, {})
    assert world.reconcile().action is world.reconcile().action is None  # there is no previous data
    assert world.phases == [Phase.VERIFYING, Phase.RESTORING, Phase.STARTING, Phase.SUCCEEDED]
    assert world.actions[-2:] == [None, None]


def test_every_member_is_restored_from_the_same_snapshot_and_token() -> None:
    world = World(NEW, CLUSTER)
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    jobs = [each for each in _created(world.reconcile()) if each["kind"] == "Job"]
    commands = [job["spec"]["template"]["spec"]["containers"][0]["command"] for job in jobs]
    for name in ("--initial-cluster=", "--initial-cluster-token=", "--bump-revision=", "--mark-compacted"):
        assert len({next(word for word in command if word.startswith(name)) for command in commands}) == 1
    assert "--initial-cluster-token=restore-uid" in commands[0]
    assert {next(word for word in command if word.startswith("--name=")) for command in commands} == {
        f"--name=fresh-{number}" for number in range(3)
    }
    assert _settings(jobs[0], "RESTORE_") == {  # the volume is new: there is no old data to keep
        "RESTORE_STATE": "restored",
        "RESTORE_DATA_DIR": "/var/lib/etcd/data",
        "RESTORE_OVERWRITE": "true",
        "RESTORE_SRC": "https://10.0.0.9:8443/",
        "RESTORE_SNAPSHOT": "/scratch/snapshot.db",
    }
    volumes = [volume for job in jobs for volume in job["spec"]["template"]["spec"]["volumes"]]
    assert {volume["secret"]["secretName"] for volume in volumes if "secret" in volume} == {"back-transfer-restore-"}


def test_restore_in_place_succeeds_and_deletes_the_previous_data() -> None:
    world = _in_place()
    restoring = _until_restoring(world)
    created = _created(restoring)
    assert [each["kind"] for each in created] == ["Job"] * 3
    settings = _settings(created[0], "RESTORE_")
    assert settings["RESTORE_OLD_DATA"] == "/var/lib/etcd/before-restore-"
    assert "RESTORE_OVERWRITE" not in settings
    world.finish("member")
    world.reconcile()
    assert world.seen.annotations == {MADE_BY: "restore-uid", RESTORED: "3"}
    assert world.seen.status["clusterID"] is None
    world.cluster_status(clusterID="old")  # a late reconcile of the EtcdCluster wrote it back
    assert isinstance(world.reconcile().action, ReleaseCluster)
    assert world.seen.status["clusterID"] is None
    world.cluster_status(phase="Running", clusterID="new")
    assert world.reconcile().phase is Phase.SUCCEEDED
    assert world.status["snapshot"] == "back-before-restore-"
    for _ in range(6):
        world.reconcile()
        world.finish("tidy")
    assert (world.seen.source, world.seen.jobs, world.status["tidied"]) == (None, {}, True)
    assert world.phases == [
        Phase.VERIFYING,
        Phase.SNAPSHOTTING,
        Phase.STOPPING,
        Phase.RESTORING,
        Phase.STARTING,
        Phase.SUCCEEDED,
    ]


def test_no_snapshot_is_taken_first_without_a_healthy_member() -> None:
    world = _in_place()
    world.cluster_status(phase="QuorumLost", members=[{**MEMBERS[0], "healthy": False}])
    world.reconcile()
    assert world.reconcile(source=SERVING, check_log=CHECKED).phase is Phase.STOPPING


def _run_to_the_end(world: World) -> list[str]:
    """Until it has succeeded and has nothing more to do; the Jobs that deleted data."""
    world.finish("member")
    world.reconcile()
    world.cluster_status(phase="Running", clusterID="new")
    deleting: list[str] = []
    for _ in range(8):
        planned = world.reconcile()
        if isinstance(planned.action, CreateObjects):
            deleting += [each["metadata"]["name"] for each in planned.action.objects]
        world.finish("tidy")
    assert (world.status["phase"], world.seen.jobs, planned.action) == ("Succeeded", {}, None)
    return deleting


def _until_restoring_without_a_snapshot(world: World) -> None:
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    world.cluster_status(phase="Restoring")
    world.reconcile(stopped=True)


@pytest.mark.parametrize("how", ["quorum lost", "snapshot skipped"])
def test_previous_data_without_a_copy_is_kept_until_a_person_deletes_it(how: str) -> None:
    world = _in_place()
    if how == "quorum lost":
        world.cluster_status(phase="QuorumLost", members=[{**MEMBERS[0], "healthy": False}])
    else:
        world.restore = replace(IN_PLACE, take_snapshot=False)
    _until_restoring_without_a_snapshot(world)
    assert _run_to_the_end(world) == []
    place = "before-restore- on PVC data-example-0, data-example-1, data-example-2"
    assert world.status["previousData"] == place
    command = "kubectl annotate etcdr/back --namespace=ns etcdops.dev/delete-previous-data=true"
    assert place in world.status["message"]
    assert world.status["message"].endswith(command)
    deleted = plan(replace(world.restore, deleting=True), world.seen, world.status)
    assert (deleted.finalized, deleted.action) == (True, None)
    world.restore = replace(world.restore, delete_previous=True)
    made = _created(world.reconcile())
    assert [each["metadata"]["name"] for each in made] == [f"back-tidy-{number}" for number in range(3)]
    for _ in range(3):
        world.finish("tidy")
        world.reconcile()
    assert (world.seen.jobs, world.status["tidied"], "previousData" in world.status) == ({}, True, False)
    assert world.status["message"] == "example runs with the data of revision 7, as cluster new."


@pytest.mark.parametrize("copy", [None, {"phase": "Failed"}, {"phase": "Succeeded", "clusterID": "another"}])
def test_previous_data_is_kept_when_its_copy_is_gone_or_of_another_cluster(copy: dict[str, str] | None) -> None:
    world = _in_place()
    _until_restoring(world)
    world.seen = replace(world.seen, backup=copy)
    assert _run_to_the_end(world) == []
    assert world.status["previousData"].startswith("before-restore-")


def test_damaged_snapshot_changes_nothing() -> None:
    world = _in_place()
    world.reconcile()
    bad = Job(NOW, False, "BackoffLimitExceeded", pod="pod", ended={"fetch": Ended(1, '{"error": "it is damaged"}')})
    planned = world.reconcile(source=bad)
    assert planned.phase is Phase.FAILED
    assert "it is damaged" in planned.message
    assert world.seen.annotations == {}


def test_failed_snapshot_of_the_current_data_changes_nothing() -> None:
    world = _in_place()
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    planned = world.reconcile(backup={"phase": "Failed", "message": "The disk is full."})
    assert planned.phase is Phase.FAILED
    assert "The disk is full." in planned.message
    assert world.seen.annotations == {}


def test_failure_while_restoring_puts_the_previous_data_back() -> None:
    world = _in_place()
    _until_restoring(world)
    world.seen = replace(world.seen, jobs={**world.seen.jobs, "back-member-0": COMPLETE, "back-member-1": FAILED})
    ended = world.reconcile()
    assert (ended.phase, ended.action) == (Phase.PUTTING_BACK, DeleteJobs((Ref("back-member-2", ""),)))
    made = world.reconcile()
    assert [each["metadata"]["name"] for each in _created(made)] == [f"back-putback-{number}" for number in range(3)]
    assert HELD_BY in world.seen.annotations
    world.finish("putback", FAILED)
    assert isinstance(world.reconcile().action, DeleteJobs)  # tried again
    world.reconcile()
    world.finish("putback")
    world.reconcile()
    assert HELD_BY not in world.seen.annotations
    assert world.status["putBack"]
    assert world.seen.status["clusterID"] == "old"
    planned = world.reconcile()
    assert planned.phase is Phase.FAILED
    assert "no room" in planned.message
    assert "example has its previous data" in planned.message


def test_lost_volume_does_not_keep_the_previous_data_of_the_others_from_being_put_back() -> None:
    world = _in_place()
    _until_restoring(world)
    world.seen = replace(world.seen, jobs={**world.seen.jobs, "back-member-0": COMPLETE, "back-member-1": FAILED})
    world.reconcile()
    world.reconcile()
    world.finish("putback-1", FAILED)
    told = world.reconcile()
    assert "delete PVC data-example-1" in told.message
    world.reconcile()
    # A person does; it waits for the pod of the Job.
    lost = replace(world.seen.claims["data-example-1"], deleting=True)
    freed = world.reconcile(claims={**world.seen.claims, "data-example-1": lost})
    assert freed.action == DeleteJobs((Ref("back-putback-1", ""),))
    world.finish("putback")
    world.reconcile()
    assert "example has its previous data" in world.reconcile().message


def test_nothing_is_put_back_while_a_job_may_write() -> None:
    world = _in_place()
    _until_restoring(world)
    world.seen = replace(world.seen, jobs={**world.seen.jobs, "back-member-1": FAILED})
    world.reconcile()
    stopping = Job(NOW, False, "", stopping=True)
    waiting = world.reconcile(jobs={"back-member-2": stopping})
    assert waiting.phase is Phase.PUTTING_BACK
    assert waiting.action == DeleteJobs((Ref("back-member-2", ""),))
    assert [each["kind"] for each in _created(world.reconcile(jobs={}))] == ["Job"] * 3


def test_volumes_are_not_used_before_every_member_has_stopped() -> None:
    world = _in_place()
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    world.reconcile(backup=COPIED)
    for phase, stopped in (("Running", True), ("Restoring", False)):
        world.cluster_status(phase=phase)
        waiting = world.reconcile(stopped=stopped)
        assert (waiting.phase, waiting.action) == (Phase.STOPPING, None)


def test_removed_hold_annotation_is_set_again_before_the_release() -> None:
    world = _in_place()
    _until_restoring(world)
    world.annotate({HELD_BY: None})
    world.finish("member")
    version = world.seen.resource_version
    held = world.reconcile(stopped=False)
    assert (held.phase, held.action) == (Phase.RESTORING, HoldCluster("example", version, {HELD_BY: "back"}))
    waiting = world.reconcile()  # members may have started
    assert (waiting.phase, waiting.action) == (Phase.RESTORING, None)
    assert isinstance(world.reconcile(stopped=True).action, ReleaseCluster)


def test_second_restore_is_refused_before_it_takes_a_snapshot() -> None:
    world = _in_place()
    world.reconcile()
    refused = world.reconcile(source=SERVING, check_log=CHECKED, rival="first")
    assert (refused.phase, refused.action) == (Phase.FAILED, None)
    assert refused.message.startswith("EtcdCluster example is already being restored by EtcdRestore first.")


def test_hold_of_another_restore_is_not_taken_over() -> None:
    world = _in_place()
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    world.status["phase"] = "Stopping"  # reported, but the hold was refused: the other one was faster
    world.annotate({HELD_BY: "first"})
    refused = world.reconcile(backup=COPIED)
    assert (refused.phase, refused.action) == (Phase.FAILED, None)
    assert "EtcdRestore first" in refused.message
    assert world.seen.holder == "first"


@pytest.mark.parametrize("phase", [Phase.RESTORING, Phase.STARTING, Phase.PUTTING_BACK])
def test_hold_of_another_restore_is_never_released(phase: Phase) -> None:
    world = _in_place()
    _until_restoring(world)
    world.finish("member")
    world.annotate({HELD_BY: "other"})
    world.status |= {"phase": str(phase), "failure": "the volume is full", "releaseTime": NOW.isoformat()}
    ended = world.reconcile()
    assert (ended.phase, ended.action) == (Phase.FAILED, None)
    assert "EtcdRestore other holds example now" in ended.message
    world.reconcile()
    assert world.seen.holder == "other"


@pytest.mark.parametrize(
    ("other", "phase", "expected"),
    [
        ({"created": "2026-11-16T11:00:00Z"}, "Verifying", "first"),
        ({"created": "2026-11-16T13:00:00Z"}, "Verifying", ""),
        ({"created": "2026-11-16T13:00:00Z"}, "Stopping", ""),  # which of them holds it is decided by the hold
        ({"created": "2026-11-16T13:00:00Z"}, "Restoring", "first"),
        ({"created": "2026-11-16T11:00:00Z"}, "Failed", ""),
        ({"created": "2026-11-16T11:00:00Z", "cluster": "another"}, "Restoring", ""),
        ({"created": "2026-11-16T11:00:00Z", "uid": "restore-uid"}, "Restoring", ""),
    ],
)
def test_older_restore_or_one_that_changes_the_cluster_comes_first(
    other: dict[str, str], phase: str, expected: str
) -> None:
    cluster = other.get("cluster", "example")
    meta = {"name": "first", "namespace": "ns", "uid": other.get("uid", "x"), "creationTimestamp": other["created"]}
    spec = {"source": {"backup": "one"}, "inPlace": {"cluster": cluster, "confirm": cluster}}
    mine = replace(IN_PLACE, created="2026-11-16T12:00:00Z")
    assert first_of(mine, [{"metadata": meta, "spec": spec, "status": {"phase": phase}}]) == expected


def test_snapshot_of_a_paused_healthy_cluster_is_taken_first() -> None:
    world = _in_place()
    world.cluster_status(phase="Paused")
    world.reconcile()
    planned = world.reconcile(source=SERVING, check_log=CHECKED)
    assert planned.phase is Phase.SNAPSHOTTING
    (made,) = _created(planned)
    assert made["spec"] == {"cluster": "example", "destination": {"claim": {"name": "disk"}}}


def test_source_job_runs_beside_the_member_whose_snapshot_is_taken_first() -> None:
    """Both may use one PVC, and that may be on one node."""
    action = _in_place().reconcile().action
    assert isinstance(action, FetchSnapshot)
    (job,) = action.objects
    affinity = job["spec"]["template"]["spec"]["affinity"]["podAffinity"]
    term = affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    assert term["labelSelector"]["matchLabels"] == {"statefulset.kubernetes.io/pod-name": "example-0"}


def test_previous_data_that_cannot_be_deleted_is_reported() -> None:
    world = _in_place()
    _until_restoring(world)
    world.finish("member")
    world.reconcile()
    world.reconcile()
    world.cluster_status(phase="Running", clusterID="new")
    assert world.reconcile().phase is Phase.SUCCEEDED
    for _ in range(6):
        world.reconcile()
        world.finish("tidy", FAILED)
    assert world.status["tidied"]
    assert "could not be deleted from PVC data-example-0, data-example-1, data-example-2" in world.status["message"]


def _until_new_cluster_is_being_restored() -> World:
    world = World(NEW, CLUSTER)
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    world.reconcile()
    return world


def _is_removed(world: World) -> Plan:
    """Everything that the restore made is removed, the PVCs only after the Jobs that write to them."""
    jobs = world.reconcile()
    assert (jobs.phase, jobs.finalized) == (Phase.PUTTING_BACK, False)
    assert jobs.action == DeleteJobs(tuple(Ref(f"back-member-{number}", "") for number in range(3)))
    removed = world.reconcile()
    claims = tuple(Ref(f"data-fresh-{number}", f"uid-of-data-fresh-{number}") for number in range(3))
    assert removed.action == RemoveCluster(Ref("fresh", "cluster-uid"), claims)
    return world.reconcile()


def test_new_cluster_is_removed_when_its_data_cannot_be_made() -> None:
    world = _until_new_cluster_is_being_restored()
    world.finish("member", FAILED)
    ended = _is_removed(world)
    assert ended.phase is Phase.FAILED
    assert ended.message == (
        "A member's data could not be created: no room. EtcdCluster fresh, which this EtcdRestore created, was removed."
    )
    world.reconcile()
    assert (world.seen.source, world.seen.jobs, world.seen.claims) == (None, {}, {})


def test_new_cluster_is_removed_when_the_restore_is_deleted_before_it_starts() -> None:
    world = _until_new_cluster_is_being_restored()
    world.restore = replace(NEW, deleting=True)
    ended = _is_removed(world)
    assert (ended.phase, ended.finalized) == (Phase.FAILED, True)


def test_restore_that_is_deleted_before_it_creates_a_cluster_leaves_at_once() -> None:
    world = World(NEW, CLUSTER)
    world.reconcile()
    world.restore = replace(NEW, deleting=True)
    ended = world.reconcile()
    assert (ended.finalized, ended.action) == (True, None)


def test_cluster_that_has_its_data_starts_although_the_restore_is_deleted() -> None:
    world = _until_new_cluster_is_being_restored()
    world.finish("member")
    world.status["phase"] = "Starting"  # reported, then the operator crashed
    world.status["releaseTime"] = NOW.isoformat()
    world.restore = replace(NEW, deleting=True)
    released = world.reconcile()
    assert (isinstance(released.action, ReleaseCluster), released.finalized) == (True, False)
    assert world.reconcile().finalized
    assert HELD_BY not in world.seen.annotations


def test_cluster_that_another_restore_made_is_never_removed() -> None:
    world = _until_new_cluster_is_being_restored()
    world.annotate({MADE_BY: "another-uid"})
    ended = world.reconcile()
    assert (ended.phase, ended.action) == (Phase.FAILED, None)
    assert "exists and is not changed" in ended.message


def test_deletion_while_restoring_puts_the_previous_data_back() -> None:
    world = _in_place()
    _until_restoring(world)
    world.restore = replace(IN_PLACE, deleting=True)
    for _ in range(6):
        planned = world.reconcile()
        world.finish("putback")
    assert planned.finalized
    assert HELD_BY not in world.seen.annotations


@pytest.mark.parametrize(
    ("restore", "seen", "said"),
    [
        (IN_PLACE, {"cluster": None}, "EtcdCluster example does not exist"),
        (IN_PLACE, {"cluster": replace(CLUSTER, size=0)}, "has size 0"),
        (IN_PLACE, {"rival": "other"}, "is already being restored by EtcdRestore other"),
        (
            IN_PLACE,
            {"resource": {"metadata": {"annotations": {HELD_BY: "other"}}}},
            "is already being restored by EtcdRestore other",
        ),
        (  # of an earlier EtcdRestore of the same name
            IN_PLACE,
            {"resource": {"metadata": {"annotations": {HELD_BY: "back"}}}},
            "is already being restored by EtcdRestore back",
        ),
        (NEW, {"resource": {"metadata": {}}}, "EtcdCluster fresh exists and is not changed"),
        (NEW, {"claims": {"data-fresh-0": Claim("claim-0", "x")}}, "hold data of an earlier cluster"),
        (NEW, {"cluster": replace(CLUSTER, storage=Storage("Memory"))}, "must be Persistent"),
        (NEW, {"refusal": "spec.size: too large"}, "spec.size: too large"),
        (NEW, {"problem": "EtcdBackup x does not exist"}, "EtcdBackup x does not exist"),
        (NEW, {"cluster": replace(CLUSTER, version="3.5.35")}, "can't be restored into 3.5.35"),
    ],
)
def test_impossible_restore_fails_with_the_reason(restore: Restore, seen: dict[str, Any], said: str) -> None:
    planned = plan(restore, replace(Observation(NOW, "operator:1", SNAPSHOT, cluster=CLUSTER), **seen), {})
    assert (planned.phase, planned.reason, planned.action) == (Phase.FAILED, Reason.FAILED, None)
    assert said.lower() in planned.message.lower()


def test_restore_waits_for_its_backup_and_starts_when_that_has_succeeded() -> None:
    world = World(replace(NEW, backup="one"), CLUSTER)
    waiting = world.reconcile(snapshot=None, pending="Running")
    assert (waiting.phase, waiting.reason, waiting.action) == (Phase.PENDING, Reason.WAITING_FOR_BACKUP, None)
    assert waiting.message == "Waiting for EtcdBackup one to finish: it is Running."
    assert isinstance(world.reconcile(snapshot=SNAPSHOT, pending="").action, FetchSnapshot)


def test_template_is_checked_before_the_restore_waits_for_its_backup() -> None:
    seen = Observation(NOW, cluster=CLUSTER, pending="Running", refusal='unknown field "spec.sise"')
    planned = plan(NEW, seen, {})
    assert planned.phase is Phase.FAILED
    assert planned.message == 'Spec.newCluster.spec is not valid, so nothing was done: unknown field "spec.sise".'


def test_restore_with_an_image_that_is_not_allowed_fails_before_anything_is_done() -> None:
    planned = plan(NEW, Observation(NOW, "o", SNAPSHOT, cluster=CLUSTER, refused_image="spec.image: not allowed"), {})
    assert (planned.phase, planned.action) == (Phase.FAILED, None)
    assert "not allowed" in planned.message


def test_version_is_checked_from_the_snapshot_when_no_backup_names_it() -> None:
    bare = replace(SNAPSHOT, version="")
    seen = Observation(NOW, "o", bare, cluster=replace(CLUSTER, version="3.5.35"), source=SERVING, check_log=CHECKED)
    assert "can't be restored into 3.5.35" in plan(NEW, seen, {}).message
    newer = replace(seen, cluster=replace(CLUSTER, version="3.7.3"))
    assert _created(plan(NEW, newer, {}))
    of_3_5 = json.dumps({"hash": 255, "revision": 7, "totalKey": 9})
    assert "can't be restored into 3.7.3" in plan(NEW, replace(newer, check_log=of_3_5), {}).message


def test_finished_restore_does_nothing_more() -> None:
    for phase in (Phase.SUCCEEDED, Phase.FAILED):
        planned = plan(NEW, Observation(NOW, cluster=CLUSTER), {"phase": phase, "tidied": True})
        assert (planned.phase, planned.action) == (phase, None)


def test_jobs_that_a_crash_has_left_are_deleted() -> None:
    left = Observation(NOW, cluster=CLUSTER, jobs={"back-tidy-1": COMPLETE})
    planned = plan(IN_PLACE, left, {"phase": Phase.SUCCEEDED, "tidied": True})
    assert planned.action == DeleteJobs((Ref("back-tidy-1", ""),))


def test_restore_ends_when_its_namespace_or_itself_is_gone() -> None:
    for planned in (abandoned(IN_PLACE), gone("back")):
        assert (planned.reason, planned.finalized, planned.action) == (Reason.GONE, True, None)


def test_slow_start_says_that_the_previous_data_is_still_there() -> None:
    world = _in_place()
    _until_restoring(world)
    world.finish("member")
    world.reconcile()
    world.cluster_status(phase="Starting", message="Waiting for example-0.")
    assert world.reconcile().message == "Waiting for example to become healthy: Waiting for example-0."
    late = world.reconcile(now=NOW + timedelta(minutes=11))
    assert late.phase is Phase.STARTING
    assert late.message.endswith("look at EtcdCluster example. The previous data is still on the volumes.")


def test_slow_start_of_a_new_cluster_does_not_mention_previous_data() -> None:
    world = _until_new_cluster_is_being_restored()
    world.finish("member")
    world.reconcile()
    late = world.reconcile(now=NOW + timedelta(minutes=11))
    assert late.phase is Phase.STARTING
    assert late.message.endswith("This takes more than 10 minutes: look at EtcdCluster fresh.")


def test_restore_fails_when_the_new_cluster_is_deleted_while_it_starts() -> None:
    world = _in_place()
    _until_restoring(world)
    world.finish("member")
    world.reconcile()
    planned = world.reconcile(resource=None)
    assert (planned.phase, planned.message) == (Phase.FAILED, "EtcdCluster example was deleted.")


def test_restore_fails_when_the_source_job_ends_early() -> None:
    world = World(NEW, CLUSTER)
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    world.reconcile()
    planned = world.reconcile(source=None)
    assert planned.phase is Phase.PUTTING_BACK
    assert planned.message.startswith(
        "The restore failed: the Job that serves the snapshot to the members' Jobs has ended."
    )


def test_no_data_is_created_with_an_image_that_is_not_allowed() -> None:
    """The spec of the EtcdCluster was edited after the restore began."""
    world = _in_place()
    _until_restoring(world)
    jobs = {name: job for name, job in world.seen.jobs.items() if name != "back-member-2"}
    world.seen = replace(world.seen, jobs=jobs, refused_image="spec.repository: evil.example is not allowed")
    planned = world.reconcile()
    assert planned.phase is Phase.PUTTING_BACK
    assert "evil.example is not allowed" in planned.message
