"""The last snapshot of an EtcdCluster that is being deleted: pure. While it can't be taken, nothing is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .backup import API_VERSION, LET_GO, REQUESTED_BY
from .kube import Manifest


@dataclass(frozen=True)
class Last:
    done: bool
    message: str
    create: bool = False
    again: bool = False  # the one that failed goes, and another is made


def name_of(cluster: Manifest) -> str:
    return f"{cluster['metadata']['name']}-last-{cluster['metadata']['uid'][:8]}"


def decide(cluster: Manifest, backup: dict[str, Any] | None, *, let_go: bool) -> Last:
    """What is to be done; `backup` is the status of the EtcdBackup, None when there is none."""
    wanted = cluster["spec"].get("deletion", {}).get("snapshot")
    if not wanted or let_go or not cluster.get("status", {}).get("clusterID"):
        return Last(True, "No last snapshot is wanted, or there is nothing to take one of.")
    name = name_of(cluster)
    if backup is None:
        return Last(False, f"Taking a last snapshot, EtcdBackup {name}.", create=True)
    if backup.get("phase") == "Succeeded":
        return Last(True, f"The last snapshot is EtcdBackup {name}.")
    if backup.get("phase") == "Failed":
        message = (
            f"The last snapshot failed: {backup.get('message', '')} Nothing is deleted, and it is tried again; to "
            f"delete this EtcdCluster without, annotate it with {LET_GO}=true."
        )
        return Last(False, message, again=True)
    return Last(False, f"Waiting for the last snapshot, EtcdBackup {name}.")


def manifest(cluster: Manifest) -> Manifest:
    """The EtcdBackup. It has no owner: it outlives the cluster."""
    meta = {
        "namespace": cluster["metadata"]["namespace"],
        "name": name_of(cluster),
        "annotations": {REQUESTED_BY: f"EtcdCluster/{cluster['metadata']['name']}"},
    }
    spec = {"cluster": cluster["metadata"]["name"], **cluster["spec"]["deletion"]["snapshot"]}
    return {"apiVersion": API_VERSION, "kind": "EtcdBackup", "metadata": meta, "spec": spec}
