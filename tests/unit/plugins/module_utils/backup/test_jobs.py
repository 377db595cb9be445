from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.jobs import Job, observe, patience, snapshot_status

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
UID = "12345678-9"
STATUS = '{"hash":255,"revision":7,"totalKey":9,"totalSize":20480,"version":"3.6.0"}'


def _job(*conditions: str, **meta: Any) -> dict[str, Any]:
    said = [{"type": each, "status": "True", "reason": "BackoffLimitExceeded"} for each in conditions]
    owner = {"creationTimestamp": "2026-11-16T12:00:00Z", "ownerReferences": [{"uid": UID}]}
    return {"metadata": {**owner, **meta}, "status": {"conditions": said}}


def _pod(phase: str, state: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    containers = [{"name": "save", "state": state or {}}]
    return {
        "metadata": {"name": "pod", "creationTimestamp": "2026-11-16T12:00:00Z", **meta},
        "status": {"phase": phase, "initContainerStatuses": containers, "podIP": "10.0.0.1"},
    }


def test_a_job_has_failed_when_its_pods_have_ended() -> None:
    running = observe(_job("FailureTarget"), [_pod("Running", {"running": {}})], UID, NOW)
    assert running
    assert (running.finished, running.begun) == (False, True)
    ended = observe(_job("FailureTarget"), [_pod("Failed", {"terminated": {"exitCode": 1, "message": "no"}})], UID, NOW)
    assert ended
    assert (ended.finished, ended.why) == (True, "no")


@pytest.mark.parametrize("job", [None, _job(deletionTimestamp="2026-11-16T12:00:00Z")])
def test_a_job_that_was_deleted_is_gone_when_its_pods_are(job: dict[str, Any] | None) -> None:
    assert observe(job, [], UID, NOW) is None
    assert observe(job, [_pod("Succeeded")], UID, NOW) is None
    dying = _pod("Running", deletionTimestamp="2026-11-16T12:00:00Z")
    stopping = observe(job, [dying], UID, NOW)
    assert stopping
    assert (stopping.stopping, stopping.finished) == (True, False)
    assert observe(job, [dying], UID, NOW + timedelta(minutes=2)) is None  # its node does not answer


def test_a_job_of_another_object_of_that_name_is_none_of_ours() -> None:
    other = observe(_job("Complete"), [], "87654321-0", NOW)
    assert other
    assert (other.stopping, other.complete) == (True, False)


def test_a_pod_that_waits_has_not_begun() -> None:
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "keys" not found'}}
    job = observe(_job(), [_pod("Pending", waiting)], UID, NOW)
    assert job
    assert not job.begun
    assert job.problem == 'its pod can\'t start: CreateContainerConfigError: secret "keys" not found'


@pytest.mark.parametrize("said", ['claim "disk" not found', 'claim "disk" not found. not found'])
def test_a_pod_that_finds_no_node_says_why_once(said: str) -> None:
    pod = _pod("Pending")
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": said}]
    found = observe(_job(), [pod], UID, NOW)
    assert found
    assert found.trouble == ' Its pod can\'t be scheduled: claim "disk" not found.'


def test_a_job_that_takes_long_is_looked_at_less_often() -> None:
    job = Job(NOW, False, "")
    assert [patience(job, NOW + timedelta(seconds=passed)) for passed in (0, 9, 30, 3600)] == [2, 2, 6, 15]


@pytest.mark.parametrize("log", [STATUS, f"a warning\n{STATUS}\n", f"{STATUS}\nlast words"])
def test_what_etcdutl_says_is_found_in_its_log(log: str) -> None:
    assert snapshot_status(log) == {"revision": 7, "keys": 9, "hash": "ff", "etcdVersion": "3.6.0"}


@pytest.mark.parametrize("log", [None, "", "Error: no such file", "[]", "7", STATUS[:40]])
def test_nothing_is_made_up(log: str | None) -> None:
    assert snapshot_status(log) == {}
