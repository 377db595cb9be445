"""Larger volumes: PVCs that should grow, and the StatefulSet that makes them. Pure.

A PVC grows in place, and its pod stays. The PVC template of a StatefulSet can't be changed in place: the StatefulSet is
deleted without its pods and made again around them.

Members on full volumes can't become healthy, so PVCs grow in every state, with or without a quorum.
"""

from __future__ import annotations

from dataclasses import replace

from ..kube.manifest import Manifest
from ..kube.quantity import is_smaller
from ..plan import SOON, WATCHFUL, Plan, Ref
from . import desired
from .actions import ExpandVolumes
from .observation import Claim
from .plan import Phase, Reason
from .situation import Situation


def expand(s: Situation) -> Plan | None:
    """What must grow, or is growing; None when every PVC is large enough."""
    small = _small(s)
    if small and (why := _obstacle(s)):
        return refused(s, why)
    live = s.stateful_set
    sets = (Ref(s.cluster.name, live["metadata"].get("uid", "")),) if live and desired.is_outgrown(s) else ()
    if small or sets:
        action = ExpandVolumes(tuple(_larger(s, claim) for claim in small), sets)
        return Plan(Phase.EXPANDING, Reason.EXPANDING_VOLUMES, _expanding(s, small), action)
    growing = [claim for claim in s.observed.claims if _is_growing(s, claim)]
    if growing:
        told = ", ".join(f"{claim.name} ({claim.capacity} of {claim.requested})" for claim in growing)
        message = f"Waiting for Kubernetes to expand {told}."
        return Plan(Phase.EXPANDING, Reason.WAITING_FOR_VOLUMES, message, requeue=WATCHFUL)
    return None


def expand_meanwhile(s: Situation, planned: Plan) -> Plan:
    """The plan, whatever its phase; while it has nothing else to do, PVCs grow."""
    small = _small(s)
    if not small or planned.action is not None or planned.reason is Reason.EXPANSION_REFUSED:
        return planned
    if why := _obstacle(s):
        return refused_meanwhile(s, planned, why)
    action = ExpandVolumes(tuple(_larger(s, claim) for claim in small))
    return replace(planned, action=action, message=f"{_expanding(s, small)} {planned.message}", requeue=SOON)


def refused(s: Situation, why: str) -> Plan:
    return Plan(Phase.UNSUPPORTED, Reason.EXPANSION_REFUSED, _refusal(s, why), requeue=WATCHFUL)


def refused_meanwhile(s: Situation, planned: Plan, why: str) -> Plan:
    """The same phase and reason: that PVCs can't grow is not the worst."""
    message = planned.message.replace(f"{_expanding(s, _small(s))} ", "")
    return replace(planned, action=None, message=f"{message} {_refusal(s, why)}", requeue=WATCHFUL)


def remark(s: Situation) -> str:
    """What a person should know when spec.storage.size was reduced."""
    size = s.cluster.storage.size
    own = [claim for claim in s.observed.claims if claim.cluster_uid == s.cluster.uid and claim.requested]
    larger = [claim.name for claim in own if is_smaller(size, claim.requested)]
    if not larger or s.in_memory:
        return ""
    return f"PVCs never shrink: {', '.join(larger)} requested more than spec.storage.size."


def _refusal(s: Situation, why: str) -> str:
    return (
        f"The PVCs can't grow to {s.cluster.storage.size}: {why}. They keep their size. Correct the cause, set "
        "spec.storage.size back, or move the data to a new EtcdCluster with larger volumes."
    )


def _expanding(s: Situation, small: list[Claim]) -> str:
    names = ", ".join(claim.name for claim in small) or "future PVCs"
    return f"Expanding {names} to {s.cluster.storage.size}."


def _obstacle(s: Situation) -> str:
    names = ", ".join(s.observed.unexpandable)
    return f"StorageClass {names} does not allow it: allowVolumeExpansion is not true" if names else ""


def _small(s: Situation) -> list[Claim]:
    return [claim for claim in s.observed.claims if _is_small(s, claim)]


def _is_growing(s: Situation, claim: Claim) -> bool:
    """Whether an expansion is waited for. One that was withdrawn is not: Kubernetes may try it for ever."""
    own = claim.cluster_uid == s.cluster.uid and not s.in_memory
    wanted = own and is_smaller(claim.capacity, s.cluster.storage.size)
    return wanted and is_smaller(claim.capacity, claim.requested)


def _is_small(s: Situation, claim: Claim) -> bool:
    own = claim.cluster_uid == s.cluster.uid and not claim.deleting and not s.in_memory
    return own and is_smaller(claim.requested, s.cluster.storage.size)


def _larger(s: Situation, claim: Claim) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": s.cluster.namespace, "name": claim.name, "uid": claim.uid},
        "spec": {"resources": {"requests": {"storage": s.cluster.storage.size}}},
    }
