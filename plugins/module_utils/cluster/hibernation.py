"""Stopping all members and starting them again: for size 0, and while an EtcdRestore holds the cluster. Pure."""

from __future__ import annotations

from dataclasses import replace

from ..api.cluster import HELD_BY
from ..plan import SETTLED, SOON, WATCHFUL, Plan
from . import desired, foreign_objects
from .actions import SealConfiguration, StartMembers, StopMembers
from .health import count
from .plan import Phase, Reason
from .situation import Situation


def hold(s: Situation) -> Plan:
    """An EtcdRestore works on the volumes: no member may run."""
    message = (
        f"EtcdRestore {s.cluster.held_by} holds this cluster; no member runs until its data is in place. If that "
        f"EtcdRestore does not exist any more, remove the annotation {HELD_BY} of this EtcdCluster."
    )
    held = Plan(Phase.RESTORING, Reason.RESTORING, message, requeue=WATCHFUL)
    if why := foreign_objects.obstacle(s):
        return replace(held, reason=Reason.FOREIGN_OBJECT, message=f"{message} {why}")
    if _has_pods(s):
        # With the pods that there were: the spec may have been edited, and nobody has looked at that yet.
        stop = desired.conditional(desired.for_recorded_members(s.unchanged(), 0).stateful_set, s)
        return replace(held, action=StopMembers((stop,)), requeue=SOON)
    return replace(held, requeue=SOON) if s.observed.pods else held


def hibernate(s: Situation) -> Plan:
    if _has_pods(s):
        # Sealed before they stop, as far as a quorum reports who has started.
        wanted = desired.for_members(s, s.membership) if s.membership else desired.for_recorded_members(s, 0)
        changed = desired.changed(desired.stopped(wanted), s)
        message = "Stopping every member; the data is kept."
        return Plan(Phase.HIBERNATED, Reason.HIBERNATING, message, StopMembers(changed))
    if s.observed.pods:
        stopping = Plan(Phase.HIBERNATED, Reason.HIBERNATING, f"Waiting for {count(len(s.observed.pods))} to stop.")
        sealed = (desired.for_members(s, s.membership).config_map,) if s.membership else ()
        changed = desired.changed(sealed, s)
        return replace(stopping, action=SealConfiguration(changed)) if changed else stopping
    message = "No member runs; the data is kept. Set spec.size to start the cluster again."
    return Plan(Phase.HIBERNATED, Reason.HIBERNATED, message, requeue=SETTLED)


def wake(s: Situation, pods: list[str], replicas: int) -> Plan:
    """Start the members of a hibernated cluster, each with its data."""
    if taken := foreign_objects.foreign_claims(s, pods):
        told = foreign_objects.told(f"PVC {claim.name}" for claim in taken)
        return Plan(Phase.HIBERNATED, Reason.FOREIGN_OBJECT, told, requeue=WATCHFUL)
    certificates = s.observed.certificates
    changed = desired.changed(desired.for_recorded_members(s, replicas), s)
    return Plan(
        Phase.STARTING,
        Reason.WAKING,
        f"Starting {count(len(pods))} with their data.",
        StartMembers(changed, bool(certificates.missing or certificates.due)),
    )


def _has_pods(s: Situation) -> bool:
    """Whether there is a StatefulSet with pods, or pods that only a StatefulSet can stop."""
    orphaned = s.stateful_set is None and any(not pod.deleting for pod in s.observed.pods)
    return orphaned or s.replicas > 0
