"""What to do next for an EtcdCluster: a pure function from the spec and the observation to one plan.

One action at a time, most urgent first: quorum lost → repair → finish a half-done membership change → rollout or
upgrade → scale → volumes → clean up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..api import images
from ..plan import SETTLED, SOON, WATCHFUL, Plan, Ref
from . import (
    alarms,
    bootstrap,
    deletion,
    desired,
    foreign_objects,
    hibernation,
    joining,
    repair,
    rollout,
    scaling,
    upgrade,
    volumes,
)
from .actions import (
    CancelDowngrade,
    DeleteSnapshot,
    EnableDowngrade,
    ExpandVolumes,
    IssueCertificates,
    SealConfiguration,
    TakeSnapshot,
    UpdateObjects,
)
from .health import auth_required, health
from .membership import Membership
from .memory import join_record
from .plan import ELECTION, Phase, Reason
from .situation import Situation
from .upgrade_snapshot import expired

# What can wait until the objects are in their desired state: no member that has started stays unsealed.
_LATER = (TakeSnapshot, DeleteSnapshot, EnableDowngrade, CancelDowngrade, ExpandVolumes)


def plan(s: Situation) -> Plan:
    """The next action, or what is waited for."""
    planned, alarms_now = foreign_objects.reported(s, _plan(s)), alarms.alarm_record(s)
    record = {**join_record(joining.join_of(s, planned)), **alarms_now, **planned.record}
    return replace(alarms.alarmed(planned, alarms_now["alarms"] or ()), record=record)


def _plan(s: Situation) -> Plan:
    if s.cluster.deleting:
        return deletion.delete(s)
    if s.cluster.held_by:
        return hibernation.hold(s)
    if s.cluster.paused:
        return _paused(s)
    return volumes.expand_meanwhile(s, _serve(s))


def _serve(s: Situation) -> Plan:
    if s.observed.memory.cluster_id is None:
        return bootstrap.first_start(s)
    if blocked := foreign_objects.blocked(s):
        return _with_certificates(s, blocked) if s.observed.pods else blocked
    if not s.rejected and (why := images.refusal(s.cluster, s.observed.allowed_repositories)):
        told = Plan(Phase.UNSUPPORTED, Reason.IMAGE_NOT_ALLOWED, f"{why}.", requeue=WATCHFUL)
        return _without_new_pods(s, told, _serve)
    if s.cluster.size == 0:
        return hibernation.hibernate(s)
    return _run(s)


def _paused(s: Situation) -> Plan:
    message, due = "The operator changes nothing until spec.paused is false.", s.observed.certificates.due
    if not due:
        return Plan(Phase.PAUSED, Reason.PAUSED, message, requeue=SETTLED)
    message = (
        f"{message} Certificates {', '.join(due)} are due for renewal. Set spec.paused to false before they expire."
    )
    return Plan(Phase.PAUSED, Reason.CERTIFICATES_DUE, message, requeue=SETTLED)


def rejected(s: Situation, planned: Plan, why: str) -> Plan:
    """The plan instead, when Kubernetes would refuse its objects.

    New pods stay as they were then, so that lost members are still replaced.
    """
    if isinstance(planned.action, ExpandVolumes):
        if planned.reason is not Reason.EXPANDING_VOLUMES:
            return volumes.refused_meanwhile(s, planned, why)
        return replace(volumes.refused(s, why), record=planned.record)
    message = f"Kubernetes rejects the pods: {why}. Correct spec.pod."
    told = Plan(Phase.UNSUPPORTED, Reason.REJECTED, message, requeue=WATCHFUL, record=planned.record)
    return told if s.rejected else _without_new_pods(s, told, plan)


def _without_new_pods(s: Situation, told: Plan, again: Callable[[Situation], Plan]) -> Plan:
    """What is done all the same when the pods must stay what they are, or what is told, if that is nothing."""
    instead = again(s.unchanged()) if s.stateful_set else None
    if instead and (instead.action or instead.phase is not Phase.RUNNING or instead.reason in ELECTION):
        return replace(instead, message=f"{instead.message} {told.message}")
    return told


def _run(s: Situation) -> Plan:
    pods = desired.member_pods(s)
    if not pods:
        message = f"ConfigMap {s.cluster.config_map}, the StatefulSet and all PVCs are gone. Restore from a backup."
        return Plan(Phase.UNSUPPORTED, Reason.ALL_DATA_LOST, message, requeue=SETTLED)
    number = 1 + max(s.cluster.ordinal(pod) or 0 for pod in pods)
    if s.stateful_set and s.replicas == 0:
        return hibernation.wake(s, pods, number)
    locked_out = s.observed.view.needs_auth
    current = auth_required(s) if locked_out else _during_rollout(s, health(s))
    if (issuing := _with_certificates(s, current)) is not current:
        return issuing
    planned = _next_change(s, s.membership, current) if s.membership and not locked_out else current
    if planned.action is not None and not isinstance(planned.action, _LATER):
        return planned
    return _correct_drift(s, planned, number)


def _with_certificates(s: Situation, current: Plan) -> Plan:
    """The plan, or the same one that issues certificates first, unless it has something else to do."""
    names = s.observed.certificates.missing + s.observed.certificates.due
    if not names or current.action is not None:
        return current
    message = f"Issuing certificates: {', '.join(names)}."
    return replace(current, action=IssueCertificates(), requeue=SOON, message=message)


def _during_rollout(s: Situation, current: Plan) -> Plan:
    """A look that falls into an election does not end a rollout: it keeps its phase until the members are back."""
    rolling = rollout.phase_in_progress(s)
    return replace(current, phase=rolling) if rolling and current.phase is Phase.STARTING else current


def _next_change(s: Situation, members: Membership, current: Plan) -> Plan:
    planned = change(s, members) or current
    # PVCs that can't grow block nothing else.
    settled = planned is current or planned.reason is Reason.EXPANSION_REFUSED
    if settled and current.phase is Phase.RUNNING:
        return upgrade.other_version(s, members) or upgrade.finish(s, members, planned)
    return planned


def change(s: Situation, members: Membership) -> Plan | None:
    """The next change, or what it waits for; None when nothing is to be changed or nothing can be."""
    if any(slot.lost for slot in members.voters):
        return repair.repair(s, members)
    pending = upgrade.prepare(s, members) if s.target and not s.rejected else None
    if members.learners:
        # A learner may never start with the version that was set back.
        corrected = pending if pending and isinstance(pending.action, (CancelDowngrade, UpdateObjects)) else None
        return corrected or joining.learner(s, members, members.learners[0])
    moving = upgrade.lower_again(s, members)
    if moving is None and scaling.is_short(s, members):
        moving = scaling.resize(s, members)
    if moving is None and alarms.is_corrupt(s):
        return None
    if moving is None and pending is not None and not pending.reason.blocked:
        moving = pending
    moving = moving or rollout.rollout(s, members)
    if moving and not moving.reason.blocked:
        return moving
    if members.undependable:
        return pending
    return scaling.resize(s, members) or pending or moving or volumes.expand(s) or expired(s)


def _correct_drift(s: Situation, planned: Plan, number: int) -> Plan:
    """Bring objects to their desired state before what can wait."""
    if s.membership:
        wanted = desired.for_members(s, s.membership)
    else:
        s = upgrade.corrected(s)
        wanted = desired.for_recorded_members(s, number)
    if changed := desired.changed(wanted, s):
        only_files = [each["kind"] for each in changed] == ["ConfigMap"]
        action = SealConfiguration(changed) if only_files else UpdateObjects(changed)
        return Plan(planned.phase, planned.reason, planned.message, action)
    unknown = s.membership is None and not s.observed.view.needs_auth
    if unknown and (stuck := _stuck_pods(s, wanted.template_hash)):
        return replace(planned, action=UpdateObjects(stuck_pods=stuck), requeue=SOON)
    return planned


def _stuck_pods(s: Situation, wanted: str) -> tuple[Ref, ...]:
    """Outdated pods that never ran: they hold nothing."""
    return tuple(
        pod.ref
        for pod in s.observed.pods
        if pod.template_hash != wanted and pod.problem and not pod.deleting and not pod.crashed and not pod.started
    )
