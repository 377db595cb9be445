"""What the status of an EtcdCluster says of its last backup, on a real kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import Backup, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.notify import notify_cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan

from tests.unit.plugins.objects import Namespace

SPEC = {"cluster": "example", "destination": {"claim": {"name": "disk"}}}
SUCCEEDED = Plan(
    Phase.SUCCEEDED, Reason.SUCCEEDED, "Done.", record={"completionTime": "2026-11-16T12:00:00Z", "revision": 7}
)
FINALIZED = Plan(Phase.DELETING, Reason.DELETED, "", finalized=True)
DONE = {"type": "Complete", "status": "True", "reason": "Succeeded", "message": ""} | {
    "lastTransitionTime": "2026-11-16T12:00:00Z"
}


@pytest.fixture(autouse=True)
def _cluster(namespace: Namespace) -> None:
    namespace.cluster("example", {"phase": "Running"})


def _backup(namespace: Namespace, name: str, time: str = "", revision: int = 0) -> Backup:
    status = (
        {"phase": "Succeeded", "completionTime": time, "revision": revision, "conditions": [DONE]} if time else None
    )
    return parse(namespace.resource("EtcdBackup", name, SPEC, status))


def _last(namespace: Namespace) -> tuple[Any, Any]:
    """The last backup as the EtcdCluster has it, and the annotation that has it reconciled."""
    cluster = namespace.get("EtcdCluster", "example")
    annotations = cluster["metadata"].get("annotations", {})
    return cluster["status"].get("lastBackup"), annotations.get("etcdops.dev/backed-up")


def test_success_is_recorded_once(namespace: Namespace) -> None:
    backup = _backup(namespace, "one")
    notify_cluster(namespace.kube, backup, SUCCEEDED, {"phase": "Running"})
    recorded = {"name": "one", "time": "2026-11-16T12:00:00Z", "revision": 7}
    assert _last(namespace) == (recorded, "2026-11-16T12:00:00Z")
    assert namespace.get("EtcdCluster", "example")["status"]["phase"] == "Running"
    version = namespace.get("EtcdCluster", "example")["metadata"]["resourceVersion"]
    notify_cluster(namespace.kube, backup, SUCCEEDED, {"phase": "Succeeded"})
    assert namespace.get("EtcdCluster", "example")["metadata"]["resourceVersion"] == version


def test_failure_is_not_recorded(namespace: Namespace) -> None:
    failed = Plan(Phase.FAILED, Reason.FAILED, "The disk is full.")
    notify_cluster(namespace.kube, _backup(namespace, "one"), failed, {"phase": "Running"})
    assert _last(namespace) == (None, None)


def test_deletion_of_the_recorded_backup_records_the_next_best(namespace: Namespace) -> None:
    old, new = (
        _backup(namespace, "old", "2026-11-16T11:00:00Z", 5),
        _backup(namespace, "new", "2026-11-16T12:00:00Z", 7),
    )
    notify_cluster(namespace.kube, new, SUCCEEDED, {"phase": "Running"})
    before = {"phase": "Deleting", "conditions": [DONE]}
    notify_cluster(namespace.kube, new, FINALIZED, before)
    assert _last(namespace) == ({"name": "old", "time": "2026-11-16T11:00:00Z", "revision": 5}, "2026-11-16T11:00:00Z")
    namespace.kube.delete("EtcdBackup", namespace.name, "new")
    notify_cluster(namespace.kube, old, FINALIZED, before)
    assert _last(namespace) == (None, None)


def test_deletion_of_another_backup_changes_nothing(namespace: Namespace) -> None:
    old, new = (
        _backup(namespace, "old", "2026-11-16T11:00:00Z", 5),
        _backup(namespace, "new", "2026-11-16T12:00:00Z", 7),
    )
    notify_cluster(namespace.kube, new, SUCCEEDED, {"phase": "Running"})
    recorded = _last(namespace)
    notify_cluster(namespace.kube, old, FINALIZED, {"phase": "Deleting", "conditions": [DONE]})
    assert _last(namespace) == recorded


def test_cluster_that_is_gone_is_not_an_error(namespace: Namespace) -> None:
    backup = _backup(namespace, "one")
    namespace.kube.delete("EtcdCluster", namespace.name, "example")
    notify_cluster(namespace.kube, backup, SUCCEEDED, {"phase": "Running"})
    notify_cluster(namespace.kube, backup, FINALIZED, {"phase": "Deleting", "conditions": [DONE]})
    assert namespace.kube.get("EtcdCluster", namespace.name, "example") is None
