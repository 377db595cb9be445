from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
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
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.jobs import Ended, Job
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.plan import Observed, Phase, Plan, Step, status
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.planner import plan

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
MEMBERS = [{"name": "example-0", "role": "leader", "healthy": True}]


class World:
    """What the API server would keep, with the operator's own steps taken at once and all else by the test."""

    def __init__(self, restore: Restore, cluster: Cluster, **seen: Any) -> None:
        self.restore, self.cluster = restore, cluster
        self.status: dict[str, Any] = {}
        self.seen = Observed(NOW, "operator:1", SNAPSHOT, cluster=cluster, **seen)
        self.phases: list[Phase] = []
        self.steps: list[Step] = []

    def reconcile(self, **seen: Any) -> Plan:
        self.seen = replace(self.seen, **seen)
        planned = plan(self.restore, self.seen, self.status)
        told = status(self.restore, planned, self.status, NOW)
        self.status = {key: value for key, value in (self.status | told).items() if value is not None}
        if not self.phases or self.phases[-1] is not planned.phase:
            self.phases.append(planned.phase)
        self.steps.append(planned.step)
        self._take(planned)
        return planned

    def _take(self, planned: Plan) -> None:
        made = {each["metadata"]["name"]: each for each in planned.create}
        jobs = {name: ACTIVE for name, each in made.items() if each["kind"] == "Job" and name != "back-source"}
        claims = {name: "cluster-uid" for name, each in made.items() if each["kind"] == "PersistentVolumeClaim"}
        kept = {name: job for name, job in self.seen.jobs.items() if name not in planned.delete_jobs}
        self.seen = replace(self.seen, jobs=kept | jobs, claims={**self.seen.claims, **claims})
        if "back-source" in made:
            self.seen = replace(self.seen, source=ACTIVE)
        if "back-source" in planned.delete_jobs:
            self.seen = replace(self.seen, source=None)
        for each in made.values():
            if each["kind"] == "EtcdCluster":
                self.seen = replace(self.seen, resource=each)
            elif each["kind"] == "EtcdBackup":
                self.seen = replace(self.seen, backup={})
        if planned.annotations and self.seen.resource:
            self.annotate(planned.annotations)
        if planned.forget_id:
            self.cluster_status(clusterID=None)

    def annotate(self, wanted: dict[str, str | None]) -> None:
        assert self.seen.resource
        have = {key: value for key, value in (self.seen.annotations | wanted).items() if value is not None}
        resource = {**self.seen.resource, "metadata": {**self.seen.resource["metadata"], "annotations": have}}
        self.seen = replace(self.seen, resource=resource)

    def cluster_status(self, **changed: Any) -> None:
        assert self.seen.resource
        self.seen = replace(self.seen, resource={**self.seen.resource, "status": self.seen.status | changed})

    def finish(self, verb: str, job: Job = COMPLETE) -> None:
        self.seen = replace(self.seen, jobs={k: job if f"-{verb}-" in k else v for k, v in self.seen.jobs.items()})


def _in_place() -> World:
    resource = {"metadata": {"name": "example"}, "status": {"phase": "Running", "clusterID": "old", "members": MEMBERS}}
    claims = {f"data-example-{number}": "cluster-uid" for number in range(3)}
    return World(IN_PLACE, replace(CLUSTER, name="example"), resource=resource, claims=claims, stopped=False)


def _until_restoring(world: World) -> Plan:
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    world.reconcile(backup={"phase": "Succeeded"})
    world.cluster_status(phase="Restoring")
    return world.reconcile(stopped=True)


def _settings(job: dict[str, Any], prefix: str) -> dict[str, str]:
    """Of its first container."""
    env = job["spec"]["template"]["spec"]["initContainers"][0]["env"]
    return {each["name"]: each["value"] for each in env if each["name"].startswith(prefix)}


def test_into_a_new_cluster() -> None:
    world = World(NEW, CLUSTER)
    first = world.reconcile()
    assert first.step is Step.FETCH
    world.reconcile(source=replace(SERVING, running=False))
    made = world.reconcile(source=SERVING, check_log=CHECKED).create[0]
    assert (made["kind"], made["spec"]) == ("EtcdCluster", {"version": "3.6.16"})
    assert made["metadata"]["annotations"] == {HELD_BY: "back", MADE_BY: "restore-uid"}
    restoring = world.reconcile()
    assert [each["kind"] for each in restoring.create] == ["PersistentVolumeClaim"] * 3 + ["Job"] * 3
    assert restoring.create[0]["metadata"]["labels"]["etcdops.dev/cluster-uid"] == "cluster-uid"
    assert world.reconcile().step is Step.IDLE
    world.finish("member")
    released = world.reconcile()
    assert (released.step, released.forget_id) == (Step.RELEASE, True)
    assert world.seen.annotations == {MADE_BY: "restore-uid", RESTORED: "3"}
    assert world.reconcile().phase is Phase.STARTING
    world.cluster_status(phase="Running", clusterID="new")
    assert world.reconcile().phase is Phase.SUCCEEDED
    assert world.status["clusterID"] == "new"
    assert (world.status["revision"], world.status["size"]) == (7, 3)
    world.reconcile()
    assert (world.seen.source, world.seen.jobs) == (None, {})
    assert world.reconcile().step is world.reconcile().step is Step.IDLE  # there was nothing before
    assert world.phases == [Phase.VERIFYING, Phase.RESTORING, Phase.STARTING, Phase.SUCCEEDED]
    assert world.steps[-2:] == [Step.IDLE, Step.IDLE]


def test_every_member_is_made_from_the_same() -> None:
    world = World(NEW, CLUSTER)
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    jobs = [each for each in world.reconcile().create if each["kind"] == "Job"]
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


def test_in_place() -> None:
    world = _in_place()
    restoring = _until_restoring(world)
    assert [each["kind"] for each in restoring.create] == ["Job"] * 3
    settings = _settings(restoring.create[0], "RESTORE_")
    assert settings["RESTORE_OLD_DATA"] == "/var/lib/etcd/before-restore-"
    assert "RESTORE_OVERWRITE" not in settings
    world.finish("member")
    world.reconcile()
    assert world.seen.annotations == {MADE_BY: "restore-uid", RESTORED: "3"}
    assert world.seen.status["clusterID"] is None
    world.cluster_status(clusterID="old")  # somebody wrote late what was read early
    assert world.reconcile().step is Step.RELEASE
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


def test_in_place_without_a_quorum_there_is_no_snapshot_first() -> None:
    world = _in_place()
    world.cluster_status(phase="QuorumLost", members=[{**MEMBERS[0], "healthy": False}])
    world.reconcile()
    assert world.reconcile(source=SERVING, check_log=CHECKED).phase is Phase.STOPPING


def test_a_bad_snapshot_touches_nothing() -> None:
    world = _in_place()
    world.reconcile()
    bad = Job(NOW, False, "BackoffLimitExceeded", pod="pod", ended={"fetch": Ended(1, '{"error": "it is damaged"}')})
    planned = world.reconcile(source=bad)
    assert planned.phase is Phase.FAILED
    assert "it is damaged" in planned.message
    assert world.seen.annotations == {}


def test_no_snapshot_of_what_is_there_touches_nothing() -> None:
    world = _in_place()
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    planned = world.reconcile(backup={"phase": "Failed", "message": "The disk is full."})
    assert planned.phase is Phase.FAILED
    assert "The disk is full." in planned.message
    assert world.seen.annotations == {}


def test_a_failure_half_way_puts_everything_back() -> None:
    world = _in_place()
    _until_restoring(world)
    world.seen = replace(world.seen, jobs={**world.seen.jobs, "back-member-0": COMPLETE, "back-member-1": FAILED})
    ended = world.reconcile()
    assert (ended.phase, ended.delete_jobs) == (Phase.PUTTING_BACK, ("back-member-2",))
    made = world.reconcile()
    assert [each["metadata"]["name"] for each in made.create] == [f"back-putback-{number}" for number in range(3)]
    assert HELD_BY in world.seen.annotations
    world.finish("putback", FAILED)
    assert world.reconcile().step is Step.TIDY  # tried again
    world.reconcile()
    world.finish("putback")
    world.reconcile()
    assert HELD_BY not in world.seen.annotations
    assert world.status["putBack"]
    assert world.seen.status["clusterID"] == "old"
    planned = world.reconcile()
    assert planned.phase is Phase.FAILED
    assert "no room" in planned.message
    assert "has what it held before" in planned.message


def test_nothing_is_put_back_while_somebody_may_write() -> None:
    world = _in_place()
    _until_restoring(world)
    world.seen = replace(world.seen, jobs={**world.seen.jobs, "back-member-1": FAILED})
    world.reconcile()
    stopping = Job(NOW, False, "", stopping=True)
    waiting = world.reconcile(jobs={"back-member-2": stopping})
    assert (waiting.phase, waiting.create) == (Phase.PUTTING_BACK, ())
    assert [each["kind"] for each in world.reconcile(jobs={}).create] == ["Job"] * 3


def test_the_volumes_are_not_touched_before_every_member_has_stopped() -> None:
    world = _in_place()
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    world.reconcile(backup={"phase": "Succeeded"})
    for phase, stopped in (("Running", True), ("Restoring", False)):
        world.cluster_status(phase=phase)
        waiting = world.reconcile(stopped=stopped)
        assert (waiting.phase, waiting.create) == (Phase.STOPPING, ())


def test_a_mark_that_somebody_removed_is_made_again() -> None:
    world = _in_place()
    _until_restoring(world)
    world.annotate({HELD_BY: None})
    world.finish("member")
    held = world.reconcile()
    assert (held.phase, held.step) == (Phase.STOPPING, Step.HOLD)
    assert world.reconcile().step is Step.RELEASE


def test_a_paused_cluster_that_serves_is_saved_first() -> None:
    world = _in_place()
    world.cluster_status(phase="Paused")
    world.reconcile()
    planned = world.reconcile(source=SERVING, check_log=CHECKED)
    assert planned.phase is Phase.SNAPSHOTTING
    assert planned.create[0]["spec"] == {"cluster": "example", "destination": {"claim": {"name": "disk"}}}


def test_the_snapshot_is_fetched_beside_the_member_that_is_saved_first() -> None:
    """Both may be on one claim, and that on one node."""
    (job,) = _in_place().reconcile().create
    affinity = job["spec"]["template"]["spec"]["affinity"]["podAffinity"]
    term = affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    assert term["labelSelector"]["matchLabels"] == {"statefulset.kubernetes.io/pod-name": "example-0"}


def test_old_data_that_could_not_be_deleted_is_told_of() -> None:
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
    assert "could not be deleted from data-" in world.status["message"]


def test_a_new_cluster_that_got_no_data_is_told_of() -> None:
    world = World(NEW, CLUSTER)
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    world.reconcile()
    world.finish("member", FAILED)
    assert "EtcdCluster fresh was made and has no data" in world.reconcile().message


def test_deleted_half_way_puts_everything_back_too() -> None:
    world = _in_place()
    _until_restoring(world)
    world.restore = replace(IN_PLACE, deleting=True)
    for _ in range(6):
        planned = world.reconcile()
        world.finish("putback")
    assert planned.release
    assert HELD_BY not in world.seen.annotations


@pytest.mark.parametrize(
    ("restore", "seen", "said"),
    [
        (IN_PLACE, {"cluster": None}, "there is no EtcdCluster example"),
        (IN_PLACE, {"cluster": replace(CLUSTER, size=0)}, "has size 0"),
        (IN_PLACE, {"cluster": replace(CLUSTER, held_by="other")}, "is being restored by other"),
        (NEW, {"resource": {"metadata": {}}}, "exists already and is not touched"),
        (NEW, {"claims": {"data-fresh-0": "x"}}, "hold data of an earlier cluster"),
        (NEW, {"cluster": replace(CLUSTER, storage=Storage("Memory"))}, "must be Persistent"),
        (NEW, {"refusal": "spec.size: too large"}, "spec.size: too large"),
        (NEW, {"problem": "there is no EtcdBackup x"}, "there is no EtcdBackup x"),
        (NEW, {"cluster": replace(CLUSTER, version="3.5.35")}, "can't be restored into 3.5.35"),
    ],
)
def test_what_can_not_be_done_is_said(restore: Restore, seen: dict[str, Any], said: str) -> None:
    planned = plan(restore, replace(Observed(NOW, "operator:1", SNAPSHOT, cluster=CLUSTER), **seen), {})
    assert (planned.phase, planned.step) == (Phase.FAILED, Step.IDLE)
    assert said.lower() in planned.message.lower()


def test_the_version_may_be_known_from_the_snapshot_alone() -> None:
    bare = replace(SNAPSHOT, version="")
    seen = Observed(NOW, "o", bare, cluster=replace(CLUSTER, version="3.5.35"), source=SERVING, check_log=CHECKED)
    assert "can't be restored into 3.5.35" in plan(NEW, seen, {}).message
    newer = replace(seen, cluster=replace(CLUSTER, version="3.7.3"))
    assert plan(NEW, newer, {}).step is Step.CREATE
    of_3_5 = json.dumps({"hash": 255, "revision": 7, "totalKey": 9})
    assert "can't be restored into 3.7.3" in plan(NEW, replace(newer, check_log=of_3_5), {}).message


def test_finished_is_finished() -> None:
    for phase in (Phase.SUCCEEDED, Phase.FAILED):
        planned = plan(NEW, Observed(NOW, cluster=CLUSTER), {"phase": phase, "tidied": True})
        assert (planned.phase, planned.step) == (phase, Step.IDLE)
