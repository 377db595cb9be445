"""More room: claims that are to grow, and the StatefulSet that makes them. Pure.

A claim grows where it is, and its pod stays. What the StatefulSet makes claims of can't be changed in place: it is
deleted without its pods, and made anew around them.
"""

from __future__ import annotations

from ..api.cluster import Cluster
from ..kube.manifest import Manifest
from ..kube.quantity import parse
from . import desired
from .observation import Claim, Observed
from .plan import WATCHFUL, Phase, Plan, Step


def is_small(cluster: Cluster, claim: Claim) -> bool:
    """Does a claim of ours ask for less than is wanted?"""
    ours = claim.cluster_uid == cluster.uid and not claim.deleting and cluster.storage.type == "Persistent"
    return ours and bool(claim.wanted) and parse(claim.wanted) < parse(cluster.storage.size)


def change(cluster: Cluster, seen: Observed) -> Plan | None:
    """What must grow, or is growing; None when there is room enough."""
    small = [claim for claim in seen.claims if is_small(cluster, claim)]
    if small and seen.unexpandable:
        names = ", ".join(seen.unexpandable)
        return refused(cluster, f"their StorageClass {names} does not allow it (allowVolumeExpansion)")
    sets = (cluster.name,) if desired.is_outgrown(cluster, seen) else ()
    if small or sets:
        names = ", ".join(claim.name for claim in small) or "Claims to come"
        message = f"{names} grow to {cluster.storage.size}; no pod restarts."
        apply = tuple(_larger(cluster, claim) for claim in small)
        return Plan(Phase.EXPANDING, "ExpandingVolumes", message, Step.EXPAND, apply=apply, delete_sets=sets)
    growing = [claim for claim in seen.claims if claim.size and parse(claim.size) < parse(claim.wanted)]
    if growing and cluster.storage.type == "Persistent":
        told = ", ".join(f"{claim.name} ({claim.size} of {claim.wanted})" for claim in growing)
        return Plan(Phase.EXPANDING, "WaitingForVolumes", f"Waiting for {told} to grow.", requeue=WATCHFUL)
    return None


def refused(cluster: Cluster, why: str) -> Plan:
    message = (
        f"The claims can't grow to {cluster.storage.size}: {why}. They stay as they are. Allow it there, or move the "
        "data to a new EtcdCluster with larger claims."
    )
    return Plan(Phase.UNSUPPORTED, "ExpansionRefused", message, requeue=WATCHFUL)


def _larger(cluster: Cluster, claim: Claim) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": cluster.namespace, "name": claim.name},
        "spec": {"resources": {"requests": {"storage": cluster.storage.size}}},
    }
