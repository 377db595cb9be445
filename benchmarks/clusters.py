"""Manifests of the measured EtcdClusters, and checks of their status. Pure."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]

VERSION = "3.6.16"
PREFIX = "bench-"  # of every namespace that a measure creates


def cluster(where: str, name: str, size: int = 3, version: str = VERSION) -> Manifest:
    return _resource(where, name) | {"spec": {"size": size, "version": version}}


def small(where: str, name: str) -> Manifest:
    """The smallest cluster: one member with in-memory storage and TLS."""
    # etcd preallocates two WAL files of 64 MB each when it starts.
    storage = {"type": "Memory", "size": "256Mi"}
    return _resource(where, name) | {"spec": {"size": 1, "version": VERSION, "storage": storage}}


def annotated(where: str, name: str, mark: str) -> Manifest:
    """A manifest that triggers a reconcile without changing the spec."""
    resource = _resource(where, name)
    resource["metadata"]["annotations"] = {"etcdops.dev/bench": mark}
    return resource


def with_changed_spec(resource: Manifest) -> Manifest:
    """A manifest that changes the spec of a cluster without affecting its members."""
    meta = resource["metadata"]
    current = resource["spec"].get("deletion", {}).get("storage", "Keep")
    other = "Keep" if current == "Delete" else "Delete"
    return _resource(meta["namespace"], meta["name"]) | {"spec": {"deletion": {"storage": other}}}


def is_available(resource: Manifest) -> bool:
    return _condition(resource, "Available") == "True"


def is_settled(resource: Manifest) -> bool:
    """Whether the cluster is available and the operator has nothing left to do."""
    phase: object = resource.get("status", {}).get("phase")
    idle = _condition(resource, "Progressing") == "False"
    return phase == "Running" and idle and is_available(resource) and is_observed(resource)


def is_observed(resource: Manifest) -> bool:
    """Whether status.observedGeneration matches the current generation."""
    return bool(resource.get("status", {}).get("observedGeneration") == resource["metadata"]["generation"])


def unrelated(found: list[Manifest]) -> list[str]:
    """The EtcdClusters that were not created by a benchmark, as namespace/name."""
    return [
        f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in found
        if not each["metadata"]["namespace"].startswith(PREFIX)
    ]


def _resource(where: str, name: str) -> Manifest:
    return {
        "apiVersion": "etcdops.dev/v1beta1",
        "kind": "EtcdCluster",
        "metadata": {"namespace": where, "name": name},
    }


def _condition(resource: Manifest, kind: str) -> str | None:
    conditions = resource.get("status", {}).get("conditions", [])
    return next((condition["status"] for condition in conditions if condition["type"] == kind), None)
