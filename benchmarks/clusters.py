"""The EtcdClusters that are measured, and what is read from their status; pure."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]

VERSION = "3.6.16"
PREFIX = "bench-"  # of every namespace that a measure makes


def cluster(where: str, name: str, size: int = 3, version: str = VERSION) -> Manifest:
    return _resource(where, name) | {"spec": {"size": size, "version": version}}


def small(where: str, name: str) -> Manifest:
    """The least that is a cluster: one member, in memory, with TLS."""
    # etcd reserves two log files of 64 MB each when it starts.
    storage = {"type": "Memory", "size": "256Mi"}
    return _resource(where, name) | {"spec": {"size": 1, "version": VERSION, "storage": storage}}


def touched(where: str, name: str, mark: str) -> Manifest:
    """What to apply so that the operator looks at a cluster, though nothing is to be done."""
    resource = _resource(where, name)
    resource["metadata"]["annotations"] = {"etcdops.dev/bench": mark}
    return resource


def changed(resource: Manifest) -> Manifest:
    """What to apply to change a cluster's spec in a way that changes no member."""
    meta = resource["metadata"]
    now = resource["spec"].get("deletion", {}).get("storage", "Keep")
    other = "Keep" if now == "Delete" else "Delete"
    return _resource(meta["namespace"], meta["name"]) | {"spec": {"deletion": {"storage": other}}}


def is_available(resource: Manifest) -> bool:
    return _condition(resource, "Available") == "True"


def is_settled(resource: Manifest) -> bool:
    """Is there nothing left to do?"""
    phase: object = resource.get("status", {}).get("phase")
    still = _condition(resource, "Progressing") == "False"
    return phase == "Running" and still and is_available(resource) and is_observed(resource)


def is_observed(resource: Manifest) -> bool:
    """Has the operator seen the spec as it is now?"""
    return bool(resource.get("status", {}).get("observedGeneration") == resource["metadata"]["generation"])


def others(found: list[Manifest]) -> list[str]:
    """Those that no measure has made."""
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
