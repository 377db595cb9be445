from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.jobs import Job, is_foreign, observe, patience, secret
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.ownership import owner_reference

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
OWNER = owner_reference("EtcdBackup", "one", "12345678-9")


def _job(*conditions: str, **meta: Any) -> dict[str, Any]:
    said = [{"type": each, "status": "True", "reason": "BackoffLimitExceeded"} for each in conditions]
    owner = {"creationTimestamp": "2026-11-16T12:00:00Z", "uid": "job-1", "ownerReferences": [OWNER]}
    return {"metadata": {**owner, **meta}, "status": {"conditions": said}}


def _pod(phase: str, state: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    containers = [{"name": "save", "state": state or {}}]
    return {
        "metadata": {"name": "pod", "creationTimestamp": "2026-11-16T12:00:00Z", **meta},
        "status": {"phase": phase, "initContainerStatuses": containers, "podIP": "10.0.0.1"},
    }


def test_job_has_failed_only_when_its_pods_have_ended() -> None:
    running = observe(_job("FailureTarget"), [_pod("Running", {"running": {}})], OWNER, NOW)
    assert running
    assert (running.finished, running.begun) == (False, True)
    ended = observe(
        _job("FailureTarget"), [_pod("Failed", {"terminated": {"exitCode": 1, "message": "no"}})], OWNER, NOW
    )
    assert ended
    assert (ended.finished, ended.why) == (True, "no")


@pytest.mark.parametrize("job", [None, _job(deletionTimestamp="2026-11-16T12:00:00Z")])
def test_deleted_job_is_gone_only_when_its_pods_are(job: dict[str, Any] | None) -> None:
    assert observe(job, [], OWNER, NOW) is None
    assert observe(job, [_pod("Succeeded")], OWNER, NOW) is None
    dying = _pod("Running", deletionTimestamp="2026-11-16T12:00:00Z")
    stopping = observe(job, [dying], OWNER, NOW)
    assert stopping
    assert (stopping.stopping, stopping.finished) == (True, False)
    assert observe(job, [dying], OWNER, NOW + timedelta(minutes=2)) is None  # its node does not answer


def test_job_of_an_earlier_object_of_the_same_name_counts_as_stopping() -> None:
    other = observe(_job("Complete"), [], {**OWNER, "uid": "87654321-0"}, NOW)
    assert other
    assert (other.stopping, other.complete) == (True, False)


@pytest.mark.parametrize(
    "owners",
    [
        [],
        [{**OWNER, "controller": False}],
        [{**OWNER, "kind": "CronJob", "uid": "1"}],
        [{**OWNER, "name": "two", "uid": "1"}],
    ],
    ids=["none", "no controller", "another kind", "another name"],
)
def test_job_of_something_else_is_foreign(owners: list[dict[str, Any]]) -> None:
    job = _job("Complete", ownerReferences=owners)
    assert is_foreign(job, OWNER)
    assert observe(job, [], OWNER, NOW) is None
    assert not is_foreign(_job("Complete"), OWNER)


def test_pod_that_waits_for_a_secret_has_not_begun_and_reports_why() -> None:
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "keys" not found'}}
    job = observe(_job(), [_pod("Pending", waiting)], OWNER, NOW)
    assert job
    assert not job.begun
    assert job.problem == 'its pod can\'t start: CreateContainerConfigError: secret "keys" not found'


@pytest.mark.parametrize("said", ['claim "disk" not found', 'claim "disk" not found. not found'])
def test_reason_of_an_unschedulable_pod_is_reported_once(said: str) -> None:
    pod = _pod("Pending")
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": said}]
    found = observe(_job(), [pod], OWNER, NOW)
    assert found
    assert found.trouble == ' Its pod can\'t be scheduled: claim "disk" not found.'


def test_requeue_interval_grows_with_the_age_of_a_job() -> None:
    job = Job(NOW, False, "")
    assert [patience(job, NOW + timedelta(seconds=passed)) for passed in (0, 9, 30, 3600)] == [2, 2, 6, 15]


def test_key_that_a_secret_does_not_have_does_not_keep_the_pod_from_starting() -> None:
    (volume,) = secret("ca", "s3-ca", "/ca", ["ca.crt"]).volumes
    assert volume["secret"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]
    assert volume["secret"]["optional"] is True
    (whole,) = secret("keys", "age", "/keys").volumes
    assert "optional" not in whole["secret"]
