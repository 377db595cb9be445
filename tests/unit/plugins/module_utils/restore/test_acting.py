"""The hold of an EtcdCluster, in a real kube-apiserver: one EtcdRestore has it, whoever else is late or early."""

from __future__ import annotations

from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import HELD_BY, MADE_BY, RESTORED
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.acting import annotate, start_restored

from tests.unit.plugins.objects import Namespace

STATUS = {"phase": "Running", "message": "Healthy.", "clusterID": "old"}


def _version(namespace: Namespace) -> str:
    return str(namespace.get("EtcdCluster", "example")["metadata"]["resourceVersion"])


def _annotations(namespace: Namespace) -> dict[str, str]:
    found: dict[str, str] = namespace.get("EtcdCluster", "example")["metadata"].get("annotations", {})
    return found


def test_of_two_restores_that_decided_on_the_same_state_one_gets_the_hold(namespace: Namespace) -> None:
    namespace.cluster("example", STATUS)
    seen = _version(namespace)
    assert annotate(namespace.kube, namespace.name, "example", {HELD_BY: "first"}, seen)
    assert not annotate(namespace.kube, namespace.name, "example", {HELD_BY: "second"}, seen)
    assert _annotations(namespace) == {HELD_BY: "first"}


def test_late_release_is_refused(namespace: Namespace) -> None:
    namespace.cluster("example", STATUS)
    annotate(namespace.kube, namespace.name, "example", {HELD_BY: "first"}, _version(namespace))
    seen = _version(namespace)
    assert annotate(namespace.kube, namespace.name, "example", {HELD_BY: None}, seen)
    assert annotate(namespace.kube, namespace.name, "example", {HELD_BY: "second"}, _version(namespace))
    assert not annotate(namespace.kube, namespace.name, "example", {HELD_BY: None}, seen)
    assert not start_restored(namespace.kube, namespace.name, "example", {HELD_BY: None, RESTORED: "3"}, seen)
    assert _annotations(namespace) == {HELD_BY: "second"}
    assert namespace.get("EtcdCluster", "example")["status"] == STATUS


def test_cluster_that_is_gone_is_not_annotated(namespace: Namespace) -> None:
    assert not annotate(namespace.kube, namespace.name, "absent", {HELD_BY: "first"}, "1")


def test_restored_cluster_starts_without_its_previous_id(namespace: Namespace) -> None:
    namespace.cluster("example", STATUS)
    annotate(namespace.kube, namespace.name, "example", {HELD_BY: "back"}, _version(namespace))
    marks = {HELD_BY: None, MADE_BY: "restore-uid", RESTORED: "3"}
    assert start_restored(namespace.kube, namespace.name, "example", marks, _version(namespace))
    assert _annotations(namespace) == {MADE_BY: "restore-uid", RESTORED: "3"}
    assert "clusterID" not in namespace.get("EtcdCluster", "example")["status"]


def test_cluster_stays_held_when_its_status_is_written_during_the_release(namespace: Namespace) -> None:
    namespace.cluster("example", STATUS)
    annotate(namespace.kube, namespace.name, "example", {HELD_BY: "back"}, _version(namespace))

    class Interrupted(Kube):
        """The EtcdCluster's own reconcile reports right after its cluster ID was removed."""

        def __init__(self) -> None:
            """Uses the connection of the test."""

        def annotate(self, *arguments: Any) -> Manifest | None:
            return namespace.kube.annotate(*arguments)

        def patch_status(self, *arguments: Any) -> Manifest | None:
            done = namespace.kube.patch_status(*arguments)
            namespace.kube.patch_status("EtcdCluster", namespace.name, "example", {"clusterID": "old"})
            return done

    marks = {HELD_BY: None, MADE_BY: "restore-uid", RESTORED: "3"}
    assert not start_restored(Interrupted(), namespace.name, "example", marks, _version(namespace))
    assert _annotations(namespace)[HELD_BY] == "back"
    assert start_restored(namespace.kube, namespace.name, "example", marks, _version(namespace))
