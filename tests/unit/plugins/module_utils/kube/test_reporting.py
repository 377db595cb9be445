"""What is reported of a real object, by a real kube-apiserver."""

from __future__ import annotations

from datetime import UTC, datetime

from ansible_collections.etcdops.etcd.plugins.module_utils.kube.conditions import conditions
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.events import Event
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.reporting import report

from tests.unit.plugins.objects import Namespace


def test_message_of_any_length_is_written_and_settles(namespace: Namespace) -> None:
    cluster = namespace.cluster("example")
    message = "Waiting: " + "x" * 100_000
    told = conditions([("Available", "False", "Waiting", message)], 1, [], datetime.now(UTC))
    status = {"phase": "Degraded", "message": message, "conditions": told}
    assert report(namespace.kube, cluster, status, [Event("Warning", "Waiting", message)], write=True)
    written = namespace.get("EtcdCluster", "example")
    assert written["status"]["message"].startswith("Waiting: x")
    assert not report(namespace.kube, written, status, [], write=True)
