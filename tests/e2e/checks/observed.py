"""A cluster observed from outside: objects from the API server, members from etcdctl, nothing from the operator."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube, connect
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from sandbox import cluster as sandbox
from sandbox import layout
from sandbox.errors import SandboxError


@dataclass(frozen=True)
class Pod:
    name: str
    uid: str
    node: str
    ready: bool
    deleting: bool
    restarts: int
    container: str  # its ID; empty before it is created


@dataclass(frozen=True)
class Etcd:
    """The cluster according to etcdctl."""

    cluster_id: str
    voters: dict[str, str]  # member ID → name
    learners: dict[str, str]
    leader: str  # member ID
    hashes: dict[str, int]  # member ID → hash of its keys at one revision
    versions: dict[str, str]  # member ID → version


@dataclass(frozen=True)
class Observed:
    resource: Manifest
    replicas: int
    files: Mapping[str, str]
    pods: tuple[Pod, ...]
    claims: tuple[str, ...]
    etcd: Etcd | None = None  # None when not all members answer

    @property
    def status(self) -> Mapping[str, Any]:
        status: Mapping[str, Any] = self.resource.get("status", {})
        return status

    @property
    def is_persistent(self) -> bool:
        return bool(self.resource["spec"].get("storage", {}).get("type", "Persistent") == "Persistent")


def api() -> Kube:
    os.environ["KUBECONFIG"] = str(layout.kubeconfig())
    return connect()


def observe(kube: Kube, namespace: str, name: str) -> Observed:
    """The objects of a cluster."""
    resource = kube.get("EtcdCluster", namespace, name)
    if resource is None:
        raise SandboxError(f"There is no EtcdCluster {namespace}/{name}.")
    selector = f"etcdops.dev/cluster={name}"
    stateful_set = kube.get("StatefulSet", namespace, name)
    config = kube.get("ConfigMap", namespace, f"{name}-config")
    return Observed(
        resource=resource,
        replicas=stateful_set["spec"]["replicas"] if stateful_set else 0,
        files=config["data"] if config else {},
        pods=tuple(map(_pod, kube.list("Pod", namespace, selector))),
        claims=tuple(sorted(c["metadata"]["name"] for c in kube.list("PersistentVolumeClaim", namespace, selector))),
    )


def ask_etcd(namespace: str, pod: str) -> Etcd | None:
    """The members, asked with etcdctl in a pod; None when not every member answers."""
    try:
        with ThreadPoolExecutor() as pool:
            listing = pool.submit(etcdctl, namespace, pod, "member", "list")
            statuses = etcdctl(namespace, pod, "endpoint", "status", "--cluster")
        revision = min(one["Status"]["header"]["revision"] for one in statuses)
        hashes = etcdctl(namespace, pod, "endpoint", "hashkv", "--cluster", f"--rev={revision}")
        listed = listing.result()
    except SandboxError:
        return None
    members = {f"{member['ID']:x}": member for member in listed["members"]}
    return Etcd(
        cluster_id=f"{listed['header']['cluster_id']:x}",
        voters={key: m.get("name", "") for key, m in members.items() if not m.get("isLearner")},
        learners={key: m.get("name", "") for key, m in members.items() if m.get("isLearner")},
        leader=f"{statuses[0]['Status']['leader']:x}",
        hashes={f"{one['HashKV']['header']['member_id']:x}": one["HashKV"]["hash"] for one in hashes},
        versions={f"{one['Status']['header']['member_id']:x}": one["Status"]["version"] for one in statuses},
    )


def etcdctl(namespace: str, pod: str, *arguments: str) -> Any:
    where = (f"--namespace={namespace}", pod, "--container=etcd")
    output = sandbox.kubectl("exec", *where, "--", "etcdctl", "--write-out=json", *arguments)
    return json.loads(output.splitlines()[-1])


def _pod(pod: Manifest) -> Pod:
    status = pod.get("status", {})
    containers = status.get("containerStatuses", [])
    return Pod(
        name=pod["metadata"]["name"],
        uid=pod["metadata"]["uid"],
        node=pod["spec"].get("nodeName", ""),
        ready=any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", [])),
        deleting="deletionTimestamp" in pod["metadata"],
        restarts=sum(container.get("restartCount", 0) for container in containers),
        container=containers[0].get("containerID", "").rpartition("//")[2] if containers else "",
    )
