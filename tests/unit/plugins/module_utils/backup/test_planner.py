from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import (
    Backup,
    ClaimStore,
    Destination,
    S3Store,
    read,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, Storage
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.jobs import Ended, Job
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.planner import (
    Observed,
    Phase,
    Plan,
    Step,
    last_good,
    plan,
    status,
)

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
SEEN = Observed(NOW, "operator:1", CLUSTER, {"members": MEMBERS}, {"example-2": "node-2"})
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
    return before | status(backup, planned, before, NOW)


def test_it_starts_with_a_healthy_follower_near_it() -> None:
    planned = plan(CLAIM, SEEN, {})
    assert (planned.phase, planned.step) == (Phase.RUNNING, Step.CREATE)
    (job,) = planned.create
    pod = job["spec"]["template"]["spec"]
    save, check = pod["initContainers"][0], pod["containers"][0]
    env = {each["name"]: each.get("value") for each in save["env"]}
    assert env["ETCDCTL_ENDPOINTS"].split(",")[0] == "https://example-2.example-peers.ns.svc:2379"
    assert "example-1" not in env["ETCDCTL_ENDPOINTS"]
    assert env["SNAPSHOT_DEST"] == "/claim/example/one-12345678.db"
    assert "SNAPSHOT_COPY" not in env  # etcdutl reads it where it is
    assert check["image"] == CLUSTER.image
    assert check["command"][1:4] == ["snapshot", "status", env["SNAPSHOT_DEST"]]
    assert save["resources"]["limits"]["memory"] == "128Mi"
    preferred = pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred[0]["preference"]["matchExpressions"][0]["values"] == ["node-2"]
    assert job["spec"]["backoffLimit"] == 0
    assert pod["automountServiceAccountToken"] is False


def test_credentials_reach_only_the_container_that_needs_them() -> None:
    (job,) = plan(SEALED, SEEN, {}).create
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
    assert [mount["name"] for mount in check["volumeMounts"]] == ["scratch"]


def test_it_goes_well() -> None:
    running = plan(CLAIM, replace(SEEN, job=Job(NOW, False, "")), {})
    assert (running.phase, running.step) == (Phase.RUNNING, Step.IDLE)
    done = plan(CLAIM, replace(SEEN, job=DONE, check_log=CHECKED), _told(CLAIM, running, {}))
    after = _told(CLAIM, done, {})
    assert done.phase is Phase.SUCCEEDED
    assert after["location"] == "claim://disk/example/one-12345678.db"
    assert (after["revision"], after["keys"], after["hash"], after["bytes"]) == (7, 9, "ff", 20512)
    assert (after["clusterID"], after["etcdVersion"], after["member"]) == ("c1", "3.6.16", "example-2")
    tidy = plan(CLAIM, replace(SEEN, job=DONE), after)
    assert (tidy.step, tidy.delete_jobs) == (Step.TIDY, ("one-backup",))
    rest = plan(CLAIM, Observed(NOW), after)
    assert (rest.phase, rest.step) == (Phase.SUCCEEDED, Step.IDLE)


def test_what_reported_its_failure_has_left_nothing() -> None:
    place = _failed(save=Ended(1, '{"error": "/claim/x.db can not be written"}'))
    assert plan(CLAIM, replace(SEEN, job=place), {}).message == "claim://disk/x.db can not be written."
    job = _failed(save=Ended(1, '{"error": "no room for /claim/example/x.db"}'))
    planned = plan(CLAIM, replace(SEEN, job=job), {})
    assert (planned.phase, planned.message) == (Phase.FAILED, "No room for claim://disk/example/x.db.")


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (_failed(save=Ended(137, "")), "the container save was killed"),
        (_failed(save=Ended(0, json.dumps(SAVED)), check=Ended(1, "Error: bad file")), "Error: bad file"),
        (_failed(), "its pod was deleted"),
        (replace(DONE, ended={"check": Ended(0, "")}), "told nothing"),
        (replace(_failed(), failed="DeadlineExceeded"), "took too long"),
    ],
)
def test_what_was_killed_is_cleaned_up_after(job: Job, said: str) -> None:
    planned = plan(CLAIM, replace(SEEN, job=job, check_log=CHECKED), {})
    assert (planned.phase, planned.step, planned.reason) == (Phase.RUNNING, Step.CREATE, "CleaningUp")
    assert planned.create[0]["metadata"]["name"] == "one-cleanup"
    before = _told(CLAIM, planned, {})
    assert said in before["failure"]
    waiting = plan(CLAIM, replace(SEEN, cleanup=Job(NOW, False, "")), before)
    assert (waiting.phase, waiting.step) == (Phase.RUNNING, Step.IDLE)
    failed = plan(CLAIM, replace(SEEN, cleanup=Job(NOW, True, "")), before)
    assert failed.phase is Phase.FAILED
    assert said.lower() in failed.message.lower()
    stuck = plan(CLAIM, replace(SEEN, cleanup=_failed(delete=Ended(1, '{"error": "no"}'))), before)
    assert "could not be removed: no" in stuck.message


def test_a_job_that_vanished() -> None:
    assert plan(CLAIM, SEEN, {"phase": "Running"}).step is Step.CREATE  # it was never made
    planned = plan(CLAIM, SEEN, {"phase": "Running", "startTime": "2026-11-16T12:00:00Z"})
    assert planned.reason == "CleaningUp"
    assert "its Job was deleted" in planned.message


def test_a_job_of_an_earlier_backup_of_that_name_ends_first() -> None:
    planned = plan(CLAIM, replace(SEEN, job=Job(NOW, False, "", stopping=True)), {})
    assert (planned.phase, planned.step, planned.reason) == (Phase.PENDING, Step.IDLE, "WaitingForJob")


def test_a_pod_that_can_not_start() -> None:
    waiting = Job(NOW, False, "", problem="its pod can't start: secret keys not found")
    assert "secret keys not found" in plan(CLAIM, replace(SEEN, job=waiting), {}).message
    late = replace(SEEN, job=waiting, now=NOW + timedelta(minutes=3))
    planned = plan(CLAIM, late, {})
    assert (planned.phase, planned.delete_jobs) == (Phase.FAILED, ("one-backup",))
    assert planned.message == "Its pod can't start: secret keys not found."
    begun = plan(CLAIM, replace(late, job=replace(waiting, begun=True)), {})
    assert begun.phase is Phase.RUNNING


def test_a_log_that_can_not_be_had_now_is_asked_for_again() -> None:
    seen = replace(SEEN, job=DONE)
    assert plan(CLAIM, seen, {}).phase is Phase.RUNNING
    late = plan(CLAIM, replace(seen, now=NOW + timedelta(hours=2)), {})
    assert late.reason == "CleaningUp"


def test_nothing_is_removed_while_somebody_may_write() -> None:
    begun = {"phase": "Running", "startTime": "2026-11-16T12:00:00Z"}
    stopping = replace(SEEN, job=Job(NOW, False, "", stopping=True))
    for backup in (CLAIM, replace(CLAIM, deleting=True)):
        planned = plan(backup, stopping, begun)
        assert (planned.step, planned.create, planned.release) == (Step.TIDY, (), False)
        assert plan(backup, SEEN, begun).step is Step.CREATE


def test_no_cluster_and_no_members() -> None:
    assert "no EtcdCluster example" in plan(CLAIM, Observed(NOW), {}).message
    nobody = replace(SEEN, cluster_status={"phase": "Hibernated"})
    waiting = plan(CLAIM, nobody, {})
    assert waiting.phase is Phase.PENDING
    later = replace(nobody, now=NOW + timedelta(minutes=3))
    assert plan(CLAIM, later, {}).phase is Phase.PENDING  # it was not looked at before
    assert "is Hibernated" in plan(CLAIM, later, _told(CLAIM, waiting, {})).message


def _ended(backup: Backup, phase: Phase) -> dict[str, Any]:
    return {"startTime": "2026-11-16T12:00:00Z"} | status(backup, Plan(phase, str(phase), "It ended."), {}, NOW)


def test_the_last_good_one_that_is_left() -> None:
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


def test_deleting() -> None:
    kept = replace(CLAIM, deleting=True)
    good = _ended(CLAIM, Phase.SUCCEEDED)
    assert plan(kept, SEEN, good).release
    assert plan(kept, SEEN, {}).release
    going = replace(kept, delete_data=True)
    first = plan(going, SEEN, good)
    assert (first.step, first.release) == (Step.CREATE, False)
    assert plan(going, replace(SEEN, cleanup=Job(NOW, True, "")), good).release
    stuck = plan(going, replace(SEEN, cleanup=_failed(delete=Ended(1, '{"error": "no"}'))), good)
    assert (stuck.release, stuck.delete_jobs) == (False, ("one-cleanup",))
    assert "etcdops.dev/let-go=true" in stuck.message
    assert plan(replace(going, let_go=True), SEEN, good).release
    stopping = plan(kept, replace(SEEN, job=Job(NOW, False, "")), {"phase": "Running"})
    assert stopping.delete_jobs == ("one-backup",)


@pytest.mark.parametrize("phase", [Phase.SUCCEEDED, Phase.FAILED])
def test_deleting_after_a_crash_forgets_nothing(phase: Phase) -> None:
    """The status says Deleting, and the operator was ended before the finalizer was off."""
    kept = replace(CLAIM, deleting=True)
    before = _ended(CLAIM, phase)
    before = _told(kept, plan(kept, SEEN, before), before)
    assert before["phase"] == "Deleting"
    again = plan(kept, SEEN, before)
    assert (again.step, again.release) == (Step.IDLE, True)


OWN = replace(CLAIM, destination=Destination(claim=ClaimStore("one-snapshot", own=True)))


def test_a_claim_of_its_own_is_made_first() -> None:
    claim, job = plan(
        OWN, replace(SEEN, cluster=replace(CLUSTER, storage=Storage(size="8Gi", class_name="fast"))), {}
    ).create
    assert (claim["kind"], claim["metadata"]["name"]) == ("PersistentVolumeClaim", "one-snapshot")
    assert claim["metadata"]["labels"]["etcdops.dev/backup-uid"] == OWN.uid
    assert "ownerReferences" not in claim["metadata"]
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["spec"]["resources"]["requests"]["storage"] == "8Gi"
    volumes = job["spec"]["template"]["spec"]["volumes"]
    assert {"name": "claim", "persistentVolumeClaim": {"claimName": "one-snapshot"}} in volumes
    assert OWN.location == "claim://one-snapshot/example/one-12345678.db"
    assert plan(OWN, replace(SEEN, claim_uid=OWN.uid), {}).step is Step.CREATE  # after a crash


def test_a_claim_that_is_not_its_own_is_left_alone() -> None:
    theirs = replace(SEEN, claim_uid="")
    assert "already" in plan(OWN, theirs, {}).message
    going = replace(OWN, deleting=True, delete_data=True)
    assert plan(going, theirs, _ended(OWN, Phase.SUCCEEDED)).release


def test_a_claim_of_its_own_goes_with_a_failure() -> None:
    job = _failed(save=Ended(1, '{"error": "the disk is full"}'))
    planned = plan(OWN, replace(SEEN, job=job, claim_uid=OWN.uid), {})
    assert (planned.phase, planned.delete_claims) == (Phase.RUNNING, ("one-snapshot",))
    before = _told(OWN, planned, {})
    assert plan(OWN, replace(SEEN, job=job), before).message == "The disk is full."


def test_a_claim_of_its_own_goes_with_its_backup_if_the_user_says_so() -> None:
    good, seen = _ended(OWN, Phase.SUCCEEDED), replace(SEEN, claim_uid=OWN.uid)
    assert plan(replace(OWN, deleting=True), seen, good).release
    going = replace(OWN, deleting=True, delete_data=True)
    planned = plan(going, seen, good)
    assert (planned.delete_claims, planned.release) == (("one-snapshot",), False)
    assert plan(going, SEEN, good).release
    shared = plan(going, replace(seen, shared=True), good)  # somebody else's snapshot is on it
    assert (shared.delete_claims, shared.step) == ((), Step.CREATE)


def test_reading() -> None:
    resource = {
        "metadata": {
            "name": "one",
            "namespace": "ns",
            "uid": "12345678-9",
            "creationTimestamp": "2026-11-16T12:00:00Z",
            "managedFields": [
                {"manager": "ansible-operator", "time": "2026-11-16T12:00:00Z"},
                {"manager": "kubectl", "time": "2026-11-16T12:00:00Z"},
            ],
        },
        "spec": {
            "cluster": "example",
            "compression": "Zstd",
            "encryption": {"secret": "age"},
            "destination": {
                "s3": {
                    "bucket": "bucket",
                    "prefix": "some/prefix",
                    "endpoint": "https://s3",
                    "credentialsSecret": "keys",
                    "caSecret": "ca",
                    "pathStyle": True,
                }
            },
        },
    }
    assert read(resource) == replace(SEALED, requested_by="kubectl")
    resource["spec"]["destination"] = {"newClaim": {"size": "2Gi"}}  # type: ignore[index]
    assert read(resource).destination.claim == ClaimStore("one-snapshot", own=True, size="2Gi")


def test_what_deletes_a_snapshot_can_run_where_the_members_can() -> None:
    cluster = replace(CLUSTER, pod={"tolerations": [{"key": "etcd"}], "imagePullSecrets": [{"name": "pull"}]})
    going, good = replace(CLAIM, deleting=True, delete_data=True), _ended(CLAIM, Phase.SUCCEEDED)
    (job,) = plan(going, replace(SEEN, cluster=cluster), good).create
    pod = job["spec"]["template"]["spec"]
    assert {name: pod[name] for name in cluster.pod} == cluster.pod


def test_one_that_is_deleted_as_soon_as_its_job_is_there_leaves_nothing() -> None:
    own = replace(CLAIM, destination=Destination(claim=ClaimStore("one-snapshot", own=True)), deleting=True)
    for backup in (own, replace(CLAIM, deleting=True)):
        there = replace(SEEN, job=Job(NOW, False, ""), claim_uid=backup.uid if backup is own else None)
        stopping = plan(backup, there, {})  # the status has nothing of the Job yet
        assert stopping.delete_jobs == ("one-backup",)
        after = _told(backup, stopping, {})
        removing = plan(backup, replace(there, job=None), after)
        assert removing.step is (Step.TIDY if backup is own else Step.CREATE)
        assert not removing.release
    assert plan(own, replace(SEEN, claim_uid=own.uid), {}).delete_claims == ("one-snapshot",)
    assert plan(own, SEEN, {}).release


def test_what_is_missing_is_waited_for_a_while() -> None:
    seen = replace(SEEN, missing="there is no Secret age in this namespace")
    waiting = plan(SEALED, seen, {})
    assert (waiting.phase, waiting.step) == (Phase.PENDING, Step.IDLE)
    assert waiting.message.startswith("There is no Secret age in this namespace.")
    after = _told(SEALED, waiting, {})
    assert plan(SEALED, SEEN, after).step is Step.CREATE
    late = plan(SEALED, replace(seen, now=NOW + timedelta(minutes=3)), after)
    assert (late.phase, late.message) == (Phase.FAILED, "There is no Secret age in this namespace.")


def test_an_image_that_never_comes_ends_it_and_what_was_saved_goes() -> None:
    saved = {"save": Ended(0, json.dumps(SAVED))}
    stuck = Job(NOW, False, "", pod="pod", begun=True, ended=saved, problem="its pod can't start: ErrImagePull")
    later = replace(SEEN, now=NOW + timedelta(minutes=3))
    assert plan(CLAIM, replace(later, job=replace(stuck, waits_since=later.now)), {}).reason == "Running"
    planned = plan(CLAIM, replace(later, job=replace(stuck, waits_since=NOW)), {})
    assert (planned.reason, planned.result["failure"]) == ("CleaningUp", stuck.problem)
    assert planned.delete_jobs == ("one-backup",)


def test_etcdutl_is_of_the_version_that_runs() -> None:
    asked = replace(
        SEEN, cluster=replace(CLUSTER, version="3.6.99"), cluster_status={**SEEN.cluster_status, "version": "3.6.16"}
    )
    (job,) = plan(CLAIM, asked, {}).create
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == CLUSTER.image
