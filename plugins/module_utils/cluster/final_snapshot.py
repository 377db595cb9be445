"""The last snapshot of an EtcdCluster that is being deleted: pure. While it can't be taken, nothing is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ..api import backup
from ..api.backup import LET_GO
from ..api.cluster import RESTORED
from ..kube.manifest import Manifest

_AGAIN = timedelta(minutes=1)


@dataclass(frozen=True)
class Last:
    done: bool
    message: str
    create: bool = False
    again: bool = False  # the one that failed goes, and another is made


def name_of(cluster: Manifest) -> str:
    return f"{cluster['metadata']['name']}-last-{cluster['metadata']['uid'][:8]}"


def decide(cluster: Manifest, made: Manifest | None, now: datetime) -> Last:
    """What is to be done; `made` is the EtcdBackup, if there is one."""
    annotations = cluster["metadata"].get("annotations") or {}
    wanted = cluster["spec"].get("deletion", {}).get("snapshot")
    has_data = cluster.get("status", {}).get("clusterID") or RESTORED in annotations
    if not wanted or not has_data or annotations.get(LET_GO) == "true":
        return Last(True, "No last snapshot is wanted, or there is nothing to take one of.")
    name = name_of(cluster)
    if made is None:
        return Last(False, f"Taking a last snapshot, EtcdBackup {name}.", create=True)
    status = made.get("status", {})
    if status.get("phase") == "Succeeded":
        return Last(True, f"The last snapshot is EtcdBackup {name}.")
    if status.get("phase") == "Failed":
        message = (
            f"The last snapshot failed: {status.get('message', '')} Nothing is deleted, and it is tried again; to "
            f"delete this EtcdCluster without, annotate it with {LET_GO}=true."
        )
        elsewhere = made["spec"]["destination"] != wanted["destination"]
        waited = now - backup.ended_at(made) > _AGAIN
        return Last(False, message, again=elsewhere or waited)
    message = (
        f"Waiting for the last snapshot, EtcdBackup {name}: {status.get('message', 'It is yet to begin.')} "
        f"To delete this EtcdCluster without, annotate it with {LET_GO}=true."
    )
    return Last(False, message)


def manifest(cluster: Manifest) -> Manifest:
    """The EtcdBackup."""
    meta = cluster["metadata"]
    spec = {"cluster": meta["name"], **cluster["spec"]["deletion"]["snapshot"]}
    return backup.manifest(meta["namespace"], name_of(cluster), f"EtcdCluster/{meta['name']}", spec)
