"""An EtcdCluster in a real API server whose members are real etcds; only DNS, kubelets and controllers are missing."""

from __future__ import annotations

import itertools
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import manifests
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.client import Client
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.endpoint import Endpoint
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from sandbox import layout

from ... import etcds
from ...apiserver import ApiServer
from ...etcds import Certificates, eventually, healthy

_CRDS = layout.REPOSITORY / "deploy/crd"
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Live:
    kube: Kube
    cluster: Cluster
    etcds: etcds.Cluster

    @property
    def namespace(self) -> str:
        return self.cluster.namespace

    @property
    def resource(self) -> Manifest:
        found = self.kube.get("EtcdCluster", self.namespace, self.cluster.name)
        assert found
        return found

    def declare(self, **spec: Any) -> Live:
        """Change the spec."""
        changed = self.kube.apply(_resource(self.namespace, {**self.resource["spec"], **spec}))
        return replace(self, cluster=parse(changed))

    def member_id(self, number: int) -> str:
        return f"{self.etcds.client(self.etcds.members[number]).status().member_id:x}"

    @property
    def leader(self) -> int:
        """The ordinal of the member that leads."""
        return self.etcds.members.index(self.etcds.leader())

    # -- objects

    def node(self, ready: str = "True", *, hostname: str = "") -> str:
        """A new Node, with this status of its condition Ready."""
        name = f"node-{uuid4().hex[:8]}"
        meta = {"name": name, "labels": {"kubernetes.io/hostname": hostname or name}}
        self.kube._call("POST", "api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        conditions = [{"type": "Ready", "status": ready, "reason": "Test", "message": ""}]
        path, kind = f"api/v1/nodes/{name}/status", "application/merge-patch+json"
        self.kube._call("PATCH", path, {"status": {"conditions": conditions}}, content_type=kind)
        return name

    def pod(self, number: int, node: str = "", **status: Any) -> Manifest:
        """Create the pod of a member, as the StatefulSet would."""
        name = self.cluster.pod_name(number)
        template = manifests.pod_template(self.cluster, self.cluster.version)
        meta = {**template["metadata"], "namespace": self.namespace, "name": name}
        data = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}
        spec = {**template["spec"], "volumes": [*template["spec"]["volumes"], data]}
        spec |= {"nodeName": node} if node else {}
        created = self.kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        assert created
        address = self.cluster.host(name)
        self.kube.patch_status("Pod", self.namespace, name, {"podIP": address, "podIPs": [{"ip": address}], **status})
        return created

    def pods(self) -> None:
        """The pods of all members, on one node."""
        node = self.node()
        for number in range(len(self.etcds.members)):
            self.pod(number, node, conditions=[{"type": "Ready", "status": "True"}])

    def volume(self, *terms: Manifest) -> str:
        """A new PersistentVolume that requires nodes which match one of these terms."""
        name = f"volume-{uuid4().hex[:8]}"
        spec: Manifest = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/nothing"},
            "storageClassName": "none",
        }
        spec |= {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}} if terms else {}
        made = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
        self.kube._call("POST", "api/v1/persistentvolumes", made)
        return name

    def claim(
        self,
        number: int,
        *,
        uid: str = "",
        size: str = "1Gi",
        storage_class: str = "none",
        volume: str = "",
        **meta: Any,
    ) -> None:
        metadata = {
            "namespace": self.namespace,
            "name": f"data-{self.cluster.pod_name(number)}",
            "labels": {**manifests.labels(self.cluster), manifests.UID_LABEL: uid or self.cluster.uid},
            **meta,
        }
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": storage_class,
        } | ({"volumeName": volume} if volume else {})
        made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
        assert self.kube.create(made)

    def storage_class(self, *, expandable: bool) -> str:
        name = f"class-{uuid4().hex[:8]}"
        made = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": "etcdops.dev/test",
            "allowVolumeExpansion": expandable,
        }
        self.kube._call("POST", "apis/storage.k8s.io/v1/storageclasses", made)
        return name


@contextmanager
def live(
    apiserver: ApiServer, folder: Path, size: int = 3, *, certificates: Certificates | None = None, **spec: Any
) -> Iterator[Live]:
    """An EtcdCluster with so many members that run; no pods yet."""
    for name in ("etcdclusters", "etcdbackups"):
        apiserver.define(_CRDS / f"{name}.yaml")
    namespace = f"live-{next(_NUMBERS)}-{uuid4().hex[:6]}"
    apiserver.namespace(namespace)
    kube = Kube(apiserver.settings)
    mode = "Managed" if certificates else "Disabled"
    declared = {"size": size, "version": layout.ETCD_VERSIONS[1], "tls": {"mode": mode}, **spec}
    cluster = parse(kube.apply(_resource(namespace, declared)))
    network = _free_network()
    with pytest.MonkeyPatch.context() as patch:
        # In place of DNS: each pod has an address of its own.
        patch.setattr(Cluster, "host", lambda self, pod: f"{network}.{(self.ordinal(pod) or 0) + 1}")
        # A leader that stays the leader on a machine that is busy.
        running = etcds.Cluster(declared["version"], folder, certificates, heartbeat=100)
        for number in range(size):
            host, scheme = cluster.host(cluster.pod_name(number)), cluster.scheme
            # Peers talk plain text: only the client port is of interest.
            running.members.append(
                etcds.Member(cluster.pod_name(number), f"{scheme}://{host}:2379", f"http://{host}:2380")
            )
        try:
            for member in running.members:
                running.start(member)
            for number, member in enumerate(running.members):
                eventually(healthy(_client(running, member, cluster.host(cluster.pod_name(number)))))
            yield Live(kube, cluster, running)
        finally:
            running.end()


def _client(running: etcds.Cluster, member: etcds.Member, address: str) -> Client:
    if running.certificates is None:
        return running.client(member)
    client = Client(Endpoint(f"https://{etcds.NAME}:2379", address), running.certificates.client)
    running.clients.append(client)
    return client


def _resource(namespace: str, spec: Manifest) -> Manifest:
    meta = {"namespace": namespace, "name": "e"}
    return {"apiVersion": "etcdops.dev/v1beta1", "kind": "EtcdCluster", "metadata": meta, "spec": spec}


def _free_network() -> str:
    """Three bytes of loopback addresses on which nobody listens on etcd's ports."""
    while True:
        network = f"127.{random.randrange(64, 128)}.{random.randrange(256)}"  # noqa: S311
        with socket.socket() as one:
            try:
                one.bind((f"{network}.1", 2379))
            except OSError:
                continue
        return network
