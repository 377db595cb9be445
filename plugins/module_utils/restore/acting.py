"""What the acting module of a restore does to an EtcdCluster: take its hold, or release it."""

from __future__ import annotations

from collections.abc import Mapping

from ..kube.client import Kube

_KIND = "EtcdCluster"
Annotations = Mapping[str, str | None]


def annotate(api: Kube, namespace: str, name: str, annotations: Annotations, resource_version: str) -> bool:
    """Take or release a hold; False when the EtcdCluster has changed since this was decided, or is gone."""
    return api.annotate(_KIND, namespace, name, dict(annotations), resource_version) is not None


def start_restored(api: Kube, namespace: str, name: str, annotations: Annotations, resource_version: str) -> bool:
    """Let its members start with the data of a new cluster. Returns as `annotate` does.

    The cluster ID is removed while the EtcdCluster is still held and marked as restored already. Each write continues
    from the one before: whoever else writes in between, such as the reconcile of the EtcdCluster, stops it there, and
    the next reconcile of the EtcdRestore repeats it.
    """
    marks: Annotations = {key: value for key, value in annotations.items() if value}
    found = api.annotate(_KIND, namespace, name, dict(marks), resource_version)
    if found:
        found = api.patch_status(_KIND, namespace, name, {"clusterID": None}, found["metadata"]["resourceVersion"])
    return found is not None and annotate(api, namespace, name, annotations, found["metadata"]["resourceVersion"])
