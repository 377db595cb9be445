from __future__ import annotations

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.events import Event, event_manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.reporting import report

from sandbox import layout
from tests.unit.plugins.apiserver import ApiServer


def test_long_messages_are_cut_to_what_kubernetes_accepts() -> None:
    meta = {"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "1"}
    resource: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    assert len(event_manifest(resource, Event("Normal", "R", "x" * 5000))["message"]) == 1024


@pytest.fixture
def cluster(apiserver: ApiServer, request: pytest.FixtureRequest) -> Manifest:
    """An EtcdCluster in a namespace of its own."""
    apiserver.define(layout.REPOSITORY / "deploy/crd/etcdclusters.yaml")
    namespace = request.node.name.replace("_", "-")
    apiserver.namespace(namespace)
    meta, spec = {"namespace": namespace, "name": "a"}, {"size": 1, "version": "3.6.16"}
    manifest = {"apiVersion": "etcdops.dev/v1beta1", "kind": "EtcdCluster", "metadata": meta, "spec": spec}
    return Kube(apiserver.settings).create(manifest) or {}


STATUS = {"phase": "Running", "message": "fine"}
EVENTS = [Event("Normal", "Ready", "fine")]


def test_report_is_written_once(apiserver: ApiServer, cluster: Manifest) -> None:
    kube, namespace = Kube(apiserver.settings), cluster["metadata"]["namespace"]
    assert report(kube, cluster, STATUS, EVENTS, write=False) is True
    assert kube.get("EtcdCluster", namespace, "a") == cluster
    assert report(kube, cluster, STATUS, EVENTS, write=True) is True
    written = kube.get("EtcdCluster", namespace, "a") or {}
    assert written["status"] == STATUS
    (event,) = kube.list("Event", namespace, "")
    assert (event["reason"], event["involvedObject"]["uid"]) == ("Ready", cluster["metadata"]["uid"])
    assert report(kube, written, STATUS, [], write=True) is False
    assert kube.get("EtcdCluster", namespace, "a") == written


def test_status_is_written_where_no_event_can_be_created(apiserver: ApiServer, cluster: Manifest) -> None:
    kube, namespace = Kube(apiserver.settings), cluster["metadata"]["namespace"]
    kube._call("DELETE", f"api/v1/namespaces/{namespace}")  # it stays terminating: no controller finishes this
    assert report(kube, cluster, STATUS, EVENTS, write=True) is True
    assert (kube.get("EtcdCluster", namespace, "a") or {})["status"] == STATUS
    assert kube.list("Event", namespace, "") == []
