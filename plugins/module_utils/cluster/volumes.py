"""Larger volumes: PVCs that should grow, and the StatefulSet that makes them. Pure.

A PVC grows in place, and its pod stays. The PVC template of a StatefulSet can't be changed in place: the StatefulSet is
deleted without its pods and made again around them.
"""

from __future__ import annotations

from ..kube.manifest import Manifest
from ..kube.quantity import is_smaller
from ..plan import WATCHFUL, Plan, Ref
from . import desired
from .actions import ExpandVolumes
from .observation import Claim
from .plan import Phase, Reason
from .situation import Situation


def expand(s: Situation) -> Plan | None:
    """What must grow, or is growing; None when every PVC is large enough."""
    small = [claim for claim in s.observed.claims if _is_small(s, claim)]
    if small and s.observed.unexpandable:
        names = ", ".join(s.observed.unexpandable)
        return refused(s, f"StorageClass {names} does not allow it (allowVolumeExpansion)")
    live = s.stateful_set
    sets = (Ref(s.cluster.name, live["metadata"].get("uid", "")),) if live and desired.is_outgrown(s) else ()
    if small or sets:
        names = ", ".join(claim.name for claim in small) or "future PVCs"
        message = f"Expanding {names} to {s.cluster.storage.size}; no pod restarts."
        action = ExpandVolumes(tuple(_larger(s, claim) for claim in small), sets)
        return Plan(Phase.EXPANDING, Reason.EXPANDING_VOLUMES, message, action)
    growing = [claim for claim in s.observed.claims if is_smaller(claim.capacity, claim.requested)]
    if growing and not s.in_memory:
        told = ", ".join(f"{claim.name} ({claim.capacity} of {claim.requested})" for claim in growing)
        message = f"Waiting for Kubernetes to expand {told}."
        return Plan(Phase.EXPANDING, Reason.WAITING_FOR_VOLUMES, message, requeue=WATCHFUL)
    return None


def refused(s: Situation, why: str) -> Plan:
    message = (
        f"The PVCs can't grow to {s.cluster.storage.size}: {why}. They stay as they are. Allow expansion, or move the "
        "data to a new EtcdCluster with larger volumes."
    )
    return Plan(Phase.UNSUPPORTED, Reason.EXPANSION_REFUSED, message, requeue=WATCHFUL)


def _is_small(s: Situation, claim: Claim) -> bool:
    own = claim.cluster_uid == s.cluster.uid and not claim.deleting and not s.in_memory
    return own and is_smaller(claim.requested, s.cluster.storage.size)


def _larger(s: Situation, claim: Claim) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": s.cluster.namespace, "name": claim.name},
        "spec": {"resources": {"requests": {"storage": s.cluster.storage.size}}},
    }
