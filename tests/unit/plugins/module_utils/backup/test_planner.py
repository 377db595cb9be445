from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import Backup, ClaimStore, Destination, S3Store
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, Storage
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.plan import (
    CleanUp,
    Observation,
    Phase,
    Reason,
    StartJob,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.planner import abandoned, last_good, plan, status
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.jobs import Ended, Job
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan, Ref

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
CLUSTER = Cluster("example", "ns", "cluster-uid", 1, 3, "3.6.16")
S3 = S3Store("bucket", "some/prefix", "https://s3", credentials_secret="keys", ca_secret="ca", path_style=True)
CLAIM = Backup("one", "ns", "12345678-9", 1, "example", Destination(claim=ClaimStore("disk")))
SEALED = replace(CLAIM, destination=Destination(s3=S3), compress=True, encryption_secret="age")
MEMBERS = [
    {"name": "example-0", "role": "leader", "healthy": True},
    {"name": "example-1", "role": "voter", "healthy": False},
    {"name": "example-2", "role": "voter", "healthy": True},
    {"name": "example-3", "role": "learner", "healthy": True},
]
SNAPSHOT = Ref("one-snapshot", "claim-1")  # the PVC
OBSERVED = Observation(NOW, "operator:1", CLUSTER, {"members": MEMBERS}, {"example-2": "node-2"})
SAVED = {
    "size": 20512,
    "sha256": "ab",
    "version": "3.6.16",
    "cluster_id": "c1",
    "member": "example-2",
    "seconds": 0.1,
}
CHECKED = json.dumps({"hash": 255, "revision": 7, "totalKey": 9, "totalSize": 20480})
DONE = Job(NOW, True, "", pod="pod", ended={"save": Ended(0, json.dumps(SAVED)), "check": Ended(0, "")})


def _failed(**ended: Ended) -> Job:
    return Job(NOW, False, "BackoffLimitExceeded", pod="pod", ended=ended)


def _told(backup: Backup, planned: Plan, before: dict[str, Any]) -> dict[str, Any]:
    return before | status(backup, Observation(NOW), planned, before)


def _created(planned: Plan) -> tuple[Manifest, ...]:
    assert isinstance(planned.action, StartJob), planned
    return planned.action.objects


def test_snapshot_is_taken_from_a_healthy_follower_on_its_node() -> None:
    planned = plan(CLAIM, OBSERVED, {})
    assert (planned.phase, planned.reason) == (Phase.RUNNING, Reason.STARTED)
    (job,) = _created(planned)
    pod = job["spec"]["template"]["spec"]
    save, check = pod["initContainers"][0], pod["containers"][0]
    env = {each["name"]: each.get("value") for each in save["env"]}
    assert env["ETCDCTL_ENDPOINTS"].split(",")[0] == "https://example-2.example-peers.ns.svc:2379"
    assert "example-1" not in env["ETCDCTL_ENDPOINTS"]
    assert env["SNAPSHOT_DEST"] == "/claim/example/one-12345678.db"
    assert "SNAPSHOT_COPY" not in env  # etcdutl reads it where it is
    assert check["image"] == CLUSTER.image()
    assert check["command"][1:4] == ["snapshot", "status", env["SNAPSHOT_DEST"]]
    assert save["resources"]["limits"]["memory"] == "128Mi"
    preferred = pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred[0]["preference"]["matchExpressions"][0]["values"] == ["node-2"]
    assert job["spec"]["backoffLimit"] == 0
    assert pod["automountServiceAccountToken"] is False


def test_only_the_container_that_stores_the_snapshot_has_credentials() -> None:
    (job,) = _created(plan(SEALED, OBSERVED, {}))
    pod = job["spec"]["template"]["spec"]
    save, check = pod["initContainers"][0], pod["containers"][0]
    secrets = {each["name"]: each["valueFrom"] for each in save["env"] if "valueFrom" in each}
    assert secrets == {
        "AWS_ACCESS_KEY_ID": {"secretKeyRef": {"name": "keys", "key": "accessKeyID"}},
        "AWS_SECRET_ACCESS_KEY": {"secretKeyRef": {"name": "keys", "key": "secretAccessKey"}},
    }
    env = {each["name"]: each.get("value") for each in save["env"]}
    assert env["SNAPSHOT_DEST"] == "s3://bucket/some/prefix/example/one-12345678.db.zst.age"
    assert env["SNAPSHOT_COPY"] == check["command"][3] == "/scratch/snapshot.db"
    assert check["env"] == []
    assert check["volumeMounts"] == [
        {"name": "scratch", "mountPath": "/scratch/snapshot.db", "subPath": "snapshot.db", "readOnly": True}
    ]
    (scratch,) = [each for each in pod["volumes"] if each["name"] == "scratch"]
    assert scratch["emptyDir"] == {"sizeLimit": str(10 << 30)}


def test_container_with_the_image_of_the_user_gets_the_snapshot_only() -> None:
    (job,) = _created(plan(CLAIM, OBSERVED, {}))
    (check,) = job["spec"]["template"]["spec"]["containers"]
    file = "example/one-12345678.db"
    assert check["volumeMounts"] == [
        {"name": "claim", "mountPath": f"/claim/{file}", "subPath": file, "readOnly": True}
    ]


def test_backup_succeeds_and_its_job_is_deleted() -> None:
    running = plan(CLAIM, replace(OBSERVED, job=Job(NOW, False, "")), {})
    assert (running.phase, running.action) == (Phase.RUNNING, None)
    done = plan(CLAIM, replace(OBSERVED, job=DONE, check_log=CHECKED), _told(CLAIM, running, {}))
    after = _told(CLAIM, done, {})
    assert done.phase is Phase.SUCCEEDED
    assert after["location"] == "claim://disk/example/one-12345678.db"
    assert (after["revision"], after["keys"], after["hash"], after["bytes"]) == (7, 9, "ff", 20512)
    assert (after["clusterID"], after["etcdVersion"], after["member"]) == ("c1", "3.6.16", "example-2")
    tidy = plan(CLAIM, replace(OBSERVED, job=DONE), after)
    assert tidy.action == CleanUp(jobs=(Ref("one-backup", ""),))
    rest = plan(CLAIM, Observation(NOW), after)
    assert (rest.phase, rest.action) == (Phase.SUCCEEDED, None)


def test_backup_whose_job_reported_its_failure_needs_no_cleanup() -> None:
    place = _failed(save=Ended(1, '{"error": "/claim/x.db can not be written"}'))
    assert plan(CLAIM, replace(OBSERVED, job=place), {}).message == "claim://disk/x.db can not be written."
    job = _failed(save=Ended(1, '{"error": "no room for /claim/example/x.db"}'))
    planned = plan(CLAIM, replace(OBSERVED, job=job), {})
    assert (planned.phase, planned.message) == (Phase.FAILED, "No room for claim://disk/example/x.db.")


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (_failed(save=Ended(137, "")), "the container save was killed"),
        (_failed(save=Ended(0, json.dumps(SAVED)), check=Ended(1, "Error: bad file")), "Error: bad file"),
        (_failed(), "its pod was deleted"),
        (replace(DONE, ended={"check": Ended(0, "")}), "reported nothing"),
        (replace(_failed(), failed="DeadlineExceeded"), "did not end before its deadline"),
    ],
)
def test_what_a_killed_or_unverified_backup_left_is_removed(job: Job, said: str) -> None:
    planned = plan(CLAIM, replace(OBSERVED, job=job, check_log=CHECKED), {})
    assert (planned.phase, planned.reason) == (Phase.RUNNING, Reason.CLEANING_UP)
    assert [each["metadata"]["name"] for each in _created(planned)] == ["one-cleanup"]
    before = _told(CLAIM, planned, {})
    assert said in before["failure"]
    waiting = plan(CLAIM, replace(OBSERVED, cleanup=Job(NOW, False, "")), before)
    assert (waiting.phase, waiting.action) == (Phase.RUNNING, None)
    failed = plan(CLAIM, replace(OBSERVED, cleanup=Job(NOW, True, "")), before)
    assert failed.phase is Phase.FAILED
    assert said.lower() in failed.message.lower()
    stuck = plan(CLAIM, replace(OBSERVED, cleanup=_failed(delete=Ended(1, '{"error": "no"}'))), before)
    assert "could not be removed: no" in stuck.message


def test_backup_fails_when_its_job_was_deleted() -> None:
    assert _created(plan(CLAIM, OBSERVED, {"phase": "Running"}))  # it was never created
    planned = plan(CLAIM, OBSERVED, {"phase": "Running", "startTime": "2026-11-16T12:00:00Z"})
    assert planned.reason is Reason.CLEANING_UP
    assert "its Job was deleted" in planned.message


def test_job_of_an_earlier_backup_of_the_same_name_ends_first() -> None:
    planned = plan(CLAIM, replace(OBSERVED, job=Job(NOW, False, "", stopping=True)), {})
    assert (planned.phase, planned.action, planned.reason) == (Phase.PENDING, None, Reason.WAITING_FOR_JOB)


def test_backup_fails_when_its_pod_does_not_start_in_time() -> None:
    waiting = Job(NOW, False, "", problem="its pod can't start: secret keys not found")
    assert "secret keys not found" in plan(CLAIM, replace(OBSERVED, job=waiting), {}).message
    late = replace(OBSERVED, job=waiting, now=NOW + timedelta(minutes=3))
    planned = plan(CLAIM, late, {})
    assert (planned.phase, planned.action) == (Phase.FAILED, CleanUp(jobs=(Ref("one-backup", ""),)))
    assert planned.message == "Its pod can't start: secret keys not found."
    begun = plan(CLAIM, replace(late, job=replace(waiting, begun=True)), {})
    assert begun.phase is Phase.RUNNING


def test_missing_log_of_etcdutl_is_read_again_until_the_deadline() -> None:
    seen = replace(OBSERVED, job=DONE)
    assert plan(CLAIM, seen, {}).phase is Phase.RUNNING
    late = plan(CLAIM, replace(seen, now=NOW + timedelta(hours=2)), {})
    assert late.reason is Reason.CLEANING_UP


def test_nothing_is_removed_while_a_pod_may_write() -> None:
    begun = {"phase": "Running", "startTime": "2026-11-16T12:00:00Z"}
    stopping = replace(OBSERVED, job=Job(NOW, False, "", stopping=True))
    for backup in (CLAIM, replace(CLAIM, deleting=True)):
        planned = plan(backup, stopping, begun)
        assert (planned.action, planned.finalized) == (CleanUp(jobs=(Ref("one-backup", ""),)), False)
        assert _created(plan(backup, OBSERVED, begun))


def test_backup_fails_without_a_cluster_and_waits_for_a_healthy_member() -> None:
    assert "no EtcdCluster example" in plan(CLAIM, Observation(NOW), {}).message
    nobody = replace(OBSERVED, cluster_status={"phase": "Hibernated"})
    waiting = plan(CLAIM, nobody, {})
    assert waiting.phase is Phase.PENDING
    later = replace(nobody, now=NOW + timedelta(minutes=3))
    assert plan(CLAIM, later, {}).phase is Phase.PENDING  # it was not looked at before
    assert "is Hibernated" in plan(CLAIM, later, _told(CLAIM, waiting, {})).message


_REASONS = {Phase.SUCCEEDED: Reason.SUCCEEDED, Phase.FAILED: Reason.FAILED}


def _ended(backup: Backup, phase: Phase) -> dict[str, Any]:
    return {"startTime": "2026-11-16T12:00:00Z"} | status(
        backup, Observation(NOW), Plan(phase, _REASONS[phase], "It ended."), {}
    )


def test_last_good_is_the_newest_success_of_this_cluster_that_remains() -> None:
    def resource(name: str, time: str, phase: Phase = Phase.SUCCEEDED, cluster: str = "example") -> dict[str, Any]:
        told = _ended(CLAIM, phase) | {"completionTime": time, "revision": 7}
        return {"metadata": {"name": name, "uid": name}, "spec": {"cluster": cluster}, "status": told}

    leaving = {**resource("one", "9"), "metadata": {"name": "one", "uid": CLAIM.uid}}
    going = resource("going", "8")
    going["metadata"]["deletionTimestamp"] = "now"
    others = [resource("failed", "7", Phase.FAILED), resource("another", "6", cluster="another"), going]
    pending = {"metadata": {"name": "pending", "uid": "p"}, "spec": {"cluster": "example"}}
    assert last_good(CLAIM, [leaving, *others, pending]) is None
    good = [resource("old", "1"), resource("new", "2")]
    assert last_good(CLAIM, [leaving, *others, *good]) == {"name": "new", "time": "2", "revision": 7}


def test_data_is_deleted_with_the_backup_only_on_request() -> None:
    kept = replace(CLAIM, deleting=True)
    good = _ended(CLAIM, Phase.SUCCEEDED)
    assert plan(kept, OBSERVED, good).finalized
    assert plan(kept, OBSERVED, {}).finalized
    going = replace(kept, delete_data=True)
    first = plan(going, OBSERVED, good)
    assert _created(first)
    assert not first.finalized
    assert plan(going, replace(OBSERVED, cleanup=Job(NOW, True, "")), good).finalized
    stuck = plan(going, replace(OBSERVED, cleanup=_failed(delete=Ended(1, '{"error": "no"}'))), good)
    assert (stuck.finalized, stuck.action) == (False, CleanUp(jobs=(Ref("one-cleanup", ""),)))
    assert stuck.reason is Reason.CANNOT_DELETE
    assert "etcdops.dev/skip-cleanup=true" in stuck.message
    assert plan(replace(going, skip_cleanup=True), OBSERVED, good).finalized
    stopping = plan(kept, replace(OBSERVED, job=Job(NOW, False, "")), {"phase": "Running"})
    assert stopping.action == CleanUp(jobs=(Ref("one-backup", ""),))


@pytest.mark.parametrize("phase", [Phase.SUCCEEDED, Phase.FAILED])
def test_deletion_after_a_crash_still_knows_the_outcome(phase: Phase) -> None:
    """The status says Deleting, and the operator was killed before the finalizer was removed."""
    kept = replace(CLAIM, deleting=True)
    before = _ended(CLAIM, phase)
    before = _told(kept, plan(kept, OBSERVED, before), before)
    assert before["phase"] == "Deleting"
    again = plan(kept, OBSERVED, before)
    assert (again.action, again.finalized) == (None, True)


OWN = replace(CLAIM, destination=Destination(claim=ClaimStore("one-snapshot", own=True)))


def test_own_pvc_is_created_with_the_job() -> None:
    cluster = replace(CLUSTER, storage=Storage(size="8Gi", class_name="fast"))
    claim, job = _created(plan(OWN, replace(OBSERVED, cluster=cluster), {}))
    assert (claim["kind"], claim["metadata"]["name"]) == ("PersistentVolumeClaim", "one-snapshot")
    assert claim["metadata"]["labels"]["etcdops.dev/backup-uid"] == OWN.uid
    assert "ownerReferences" not in claim["metadata"]
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["spec"]["resources"]["requests"]["storage"] == "8Gi"
    volumes = job["spec"]["template"]["spec"]["volumes"]
    assert {"name": "claim", "persistentVolumeClaim": {"claimName": "one-snapshot"}} in volumes
    assert OWN.location == "claim://one-snapshot/example/one-12345678.db"
    assert _created(plan(OWN, replace(OBSERVED, claim_uid=OWN.uid, claim=SNAPSHOT), {}))  # after a crash


def test_pvc_of_another_object_is_refused_and_left_alone() -> None:
    theirs = replace(OBSERVED, claim_uid="", claim=SNAPSHOT)
    refused = plan(OWN, theirs, {})
    assert (refused.phase, refused.reason, refused.action) == (Phase.PENDING, Reason.FOREIGN_OBJECT, None)
    assert "PVC one-snapshot: not made for this EtcdBackup" in refused.message
    assert _created(plan(OWN, OBSERVED, _told(OWN, refused, {})))  # it was deleted
    going = replace(OWN, deleting=True, delete_data=True)
    assert plan(going, theirs, _ended(OWN, Phase.SUCCEEDED)).finalized


@pytest.mark.parametrize("seen", [{"claim_uid": ""}, {"foreign": frozenset({"Job one-backup"})}], ids=str)
def test_foreign_object_is_waited_for_then_fails_the_backup(seen: dict[str, Any]) -> None:
    observed = replace(OBSERVED, **seen)
    waiting = plan(OWN, observed, {})
    assert (waiting.reason, waiting.action, waiting.reason.warning) == (Reason.FOREIGN_OBJECT, None, True)
    late = plan(OWN, replace(observed, now=NOW + timedelta(minutes=3)), _told(OWN, waiting, {}))
    assert (late.phase, late.action) == (Phase.FAILED, None)
    assert late.message == waiting.message


def test_foreign_job_of_the_same_name_is_not_deleted() -> None:
    seen = replace(OBSERVED, foreign=frozenset({"Job one-cleanup"}))
    going = replace(CLAIM, deleting=True, delete_data=True)
    waiting = plan(going, seen, _ended(CLAIM, Phase.SUCCEEDED))
    assert (waiting.reason, waiting.action, waiting.finalized) == (Reason.FOREIGN_OBJECT, None, False)
    assert "Job one-cleanup" in waiting.message
    assert "etcdops.dev/skip-cleanup" in waiting.message


def test_own_pvc_is_deleted_when_the_backup_fails() -> None:
    job = _failed(save=Ended(1, '{"error": "the disk is full"}'))
    planned = plan(OWN, replace(OBSERVED, job=job, claim_uid=OWN.uid, claim=SNAPSHOT), {})
    assert (planned.phase, planned.action) == (Phase.RUNNING, CleanUp(claims=(SNAPSHOT,)))
    before = _told(OWN, planned, {})
    assert plan(OWN, replace(OBSERVED, job=job), before).message == "The disk is full."


def test_own_pvc_is_deleted_with_the_backup_only_on_request() -> None:
    good, seen = _ended(OWN, Phase.SUCCEEDED), replace(OBSERVED, claim_uid=OWN.uid, claim=SNAPSHOT)
    assert plan(replace(OWN, deleting=True), seen, good).finalized
    going = replace(OWN, deleting=True, delete_data=True)
    planned = plan(going, seen, good)
    assert (planned.action, planned.finalized) == (CleanUp(claims=(SNAPSHOT,)), False)
    assert plan(going, OBSERVED, good).finalized
    shared = plan(going, replace(seen, shared=True), good)  # another snapshot is on it
    assert [each["metadata"]["name"] for each in _created(shared)] == ["one-cleanup"]


def test_cleanup_job_has_the_scheduling_settings_of_the_members() -> None:
    cluster = replace(CLUSTER, pod={"tolerations": [{"key": "etcd"}], "imagePullSecrets": [{"name": "pull"}]})
    going, good = replace(CLAIM, deleting=True, delete_data=True), _ended(CLAIM, Phase.SUCCEEDED)
    (job,) = _created(plan(going, replace(OBSERVED, cluster=cluster), good))
    pod = job["spec"]["template"]["spec"]
    assert {name: pod[name] for name in cluster.pod} == cluster.pod


def test_backup_deleted_right_after_its_job_was_created_leaves_nothing() -> None:
    own = replace(CLAIM, destination=Destination(claim=ClaimStore("one-snapshot", own=True)), deleting=True)
    for backup in (own, replace(CLAIM, deleting=True)):
        there = replace(OBSERVED, job=Job(NOW, False, ""))
        there = replace(there, claim_uid=own.uid, claim=SNAPSHOT) if backup is own else there
        stopping = plan(backup, there, {})  # the status has nothing of the Job yet
        assert stopping.action == CleanUp(jobs=(Ref("one-backup", ""),))
        after = _told(backup, stopping, {})
        removing = plan(backup, replace(there, job=None), after)
        assert isinstance(removing.action, CleanUp if backup is own else StartJob)
        assert not removing.finalized
    assert plan(own, replace(OBSERVED, claim_uid=own.uid, claim=SNAPSHOT), {}).action == CleanUp(claims=(SNAPSHOT,))
    assert plan(own, OBSERVED, {}).finalized


def test_missing_secret_is_waited_for_then_fails_the_backup() -> None:
    seen = replace(OBSERVED, missing="Secret age does not exist in this namespace")
    waiting = plan(SEALED, seen, {})
    assert (waiting.phase, waiting.action) == (Phase.PENDING, None)
    assert waiting.message == "Secret age does not exist in this namespace. Create it within two minutes."
    after = _told(SEALED, waiting, {})
    assert _created(plan(SEALED, OBSERVED, after))
    late = plan(SEALED, replace(seen, now=NOW + timedelta(minutes=3)), after)
    assert (late.phase, late.message) == (Phase.FAILED, "Secret age does not exist in this namespace.")


def test_image_that_cannot_be_pulled_fails_the_backup_and_its_snapshot_is_removed() -> None:
    saved = {"save": Ended(0, json.dumps(SAVED))}
    stuck = Job(NOW, False, "", pod="pod", begun=True, ended=saved, problem="its pod can't start: ErrImagePull")
    later = replace(OBSERVED, now=NOW + timedelta(minutes=3))
    assert plan(CLAIM, replace(later, job=replace(stuck, waits_since=later.now)), {}).reason is Reason.RUNNING
    planned = plan(CLAIM, replace(later, job=replace(stuck, waits_since=NOW)), {})
    assert (planned.reason, planned.record["failure"]) == (Reason.CLEANING_UP, stuck.problem)
    assert planned.action == CleanUp(jobs=(Ref("one-backup", ""),))


def test_etcdutl_has_the_running_version() -> None:
    asked = replace(
        OBSERVED,
        cluster=replace(CLUSTER, version="3.6.99"),
        cluster_status={**OBSERVED.cluster_status, "version": "3.6.16"},
    )
    (job,) = _created(plan(CLAIM, asked, {}))
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == CLUSTER.image()


def test_etcdutl_has_the_image_that_the_member_runs_and_no_other_that_is_not_allowed() -> None:
    refused = replace(OBSERVED, refused_image="spec.repository: not allowed")
    planned = plan(CLAIM, refused, {})
    assert (planned.action, planned.record["failure"]) == (None, "spec.repository: not allowed")
    (job,) = _created(plan(CLAIM, replace(refused, images={"example-2": "allowed/etcd:v3.6.16"}), {}))
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "allowed/etcd:v3.6.16"


def test_namespace_that_is_being_deleted_leaves_the_data() -> None:
    planned = abandoned(SEALED)
    assert (planned.reason, planned.finalized, planned.action) == (Reason.LEFT_BEHIND, True, None)
    assert SEALED.location in planned.message


def test_cleanup_job_that_cannot_start_is_reported_while_deleting() -> None:
    going, good = replace(CLAIM, deleting=True, delete_data=True), _ended(CLAIM, Phase.SUCCEEDED)
    waiting = replace(OBSERVED, cleanup=Job(NOW, False, "", problem="its pod can't start: ErrImagePull"))
    planned = plan(going, waiting, good)
    assert (planned.finalized, planned.action) == (False, None)
    assert planned.message.endswith(" Its pod can't start: ErrImagePull.")
