"""Which member restarts next when pods are outdated: a version, an option, a resource, a label. Pure.

One member at a time, and only while all others are healthy: followers first, the leader last, after leadership moved to
an updated member. A member that does not become healthy again stops the rollout.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from ..etcd.leadership import successor
from ..etcd.restart_order import Voter, objection, restart_order
from ..kube.manifest import Manifest, display
from ..plan import WATCHFUL, Plan, Ref
from . import desired
from .actions import RestartMember, UpdateObjects
from .joining import replace_member
from .manifests import template_hash
from .membership import Membership, MemberSlot
from .observation import NodeState, Pod
from .plan import Phase, Reason
from .situation import Situation

PATIENCE = timedelta(minutes=2)  # how long a pod may take before its silence means something
_KUBELET_PATIENCE = timedelta(
    seconds=15
)  # … and before a problem that its kubelet reports does, such as a missing image


@dataclass(frozen=True)
class _Rollout:
    s: Situation
    members: Membership
    outdated: list[MemberSlot]
    phase: Phase
    voters: list[Voter]

    @property
    def progress(self) -> str:
        done = [slot for slot in self.members.voters if slot.dependable and slot not in self.outdated]
        return f"{len(done)} of {len(self.members.voters)} done"

    def waits(self, message: str) -> Plan:
        return Plan(self.phase, Reason.WAITING_FOR_MEMBER, f"{message}: {self.progress}.")

    def stops(self, message: str) -> Plan:
        return Plan(self.phase, Reason.ROLLOUT_STOPPED, message, requeue=WATCHFUL)


def rollout(s: Situation, members: Membership) -> Plan | None:
    """The next restart, or what it waits for; None when no pod is outdated."""
    wanted = desired.for_members(s, members)
    changed = desired.changed(wanted, s)
    outdated = [
        slot
        for slot in members.voters
        if slot.pod and not slot.pod.deleting and slot.pod.template_hash != wanted.template_hash
    ]
    if not outdated and (s.target or not (phase_in_progress(s) or _is_upgrading(s))):
        return None
    roll = _Rollout(s, members, outdated, _phase(s, outdated), _voters(members, outdated))
    if outdated and changed and not _changes_members(s, wanted.template_hash, changed):
        names = ", ".join(map(display, changed))
        message = f"Updating {names}; the rollout continues: {roll.progress}. spec.size is {s.cluster.size}."
        return Plan(roll.phase, Reason.UPDATING_OBJECTS, message, UpdateObjects(changed))
    if outdated and changed:
        names = ", ".join(slot.name for slot in outdated)
        message = f"New settings for {names}; members restart one at a time."
        return Plan(roll.phase, Reason.CHANGING_SETTINGS, message, UpdateObjects(changed))
    return _restart_stuck(roll) or _waiting(roll) or _restart_next(roll)


def _changes_members(s: Situation, wanted: str, changed: Iterable[Manifest]) -> bool:
    """Whether changed objects mean new settings for members; a change of spec.size does not."""
    live = s.stateful_set
    return live is None or template_hash(live) != wanted or any(each["kind"] == "ConfigMap" for each in changed)


def _restart_stuck(roll: _Rollout) -> Plan | None:
    """A member that can't start with what it has restarts first: so a bad change is rolled back where it was made."""
    for slot in roll.outdated:
        if slot.pod and _is_stuck(roll, slot, slot.pod) and not objection(roll.voters, slot.name):
            return _restart(roll, slot)
    return None


def _restart_next(roll: _Rollout) -> Plan | None:
    if not roll.outdated:
        return None
    first = restart_order(roll.voters)[0]
    slot = next(slot for slot in roll.outdated if slot.name == first.name)
    if why := objection(roll.voters, slot.name):
        return roll.waits(f"{slot.name} restarts next, but {why}")
    return _restart(roll, slot)


def _restart(roll: _Rollout, slot: MemberSlot) -> Plan:
    own = next(voter for voter in roll.voters if voter.name == slot.name)
    transferee = successor(roll.voters, own.id) if own.leads else None
    what = f"with {roll.s.version}" if roll.phase is Phase.UPGRADING else "with the new settings"
    after = f" after moving leadership to {transferee.name}" if transferee else ""
    message = f"Restarting {slot.name} {what}{after}: {roll.progress}."
    if roll.s.in_memory:
        return _replace_in_memory(roll, slot, message)
    change = desired.Change(restarting=slot.name)
    objects = desired.changed(desired.for_members(roll.s, roll.members, change), roll.s)
    pod = Ref(slot.name, slot.pod.uid if slot.pod else "")
    action = RestartMember(pod, f"{transferee.id:x}" if transferee else "", objects)
    return Plan(roll.phase, Reason.RESTARTING_MEMBER, message, action)


def _replace_in_memory(roll: _Rollout, slot: MemberSlot, message: str) -> Plan:
    """A member with its data in memory would lose it, so a new member takes its slot."""
    members = roll.members
    if members.votes < 2:
        message = (
            f"{slot.name} is the only member and has its data in memory, so it can't restart. Set spec.size to 3 first."
        )
        return Plan(Phase.UNSUPPORTED, Reason.CANNOT_RESTART, message, requeue=WATCHFUL)
    if members.has_learner or members.undependable not in ([], [slot.name]):
        others = ", ".join(name for name in members.undependable if name != slot.name) or "an unmanaged learner"
        return roll.stops(f"{slot.name} has its data in memory and can't be replaced yet: blocked by {others}.")
    message = f"{message} Its data is in memory, so a new member takes its slot."
    return Plan(roll.phase, Reason.RESTARTING_MEMBER, message, replace_member(roll.s, members, slot))


def _waiting(roll: _Rollout) -> Plan | None:
    """A member is restarting, or did not become healthy again."""
    unhealthy = [slot for slot in roll.members.voters if not slot.dependable]
    if not unhealthy:
        return _not_updated(roll)
    names = ", ".join(slot.name for slot in unhealthy)
    told = "; ".join(f"{slot.name}: {slot.problem}" for slot in unhealthy if slot.problem)
    problems = f" {told}." if told else ""
    if any(_is_coming(roll.s, slot) for slot in unhealthy):
        waiting = roll.waits(f"Waiting for {names} to become healthy")
        return replace(waiting, message=f"{waiting.message}{problems}")
    if all(slot in roll.outdated for slot in unhealthy):  # the new settings are not the cause
        message = f"{names} is not healthy, so no member is restarted: {roll.progress}.{problems}"
        return Plan(roll.phase, Reason.WAITING_FOR_MEMBER, message, requeue=WATCHFUL)
    return roll.stops(
        f"Rollout stopped, {roll.progress}: {names} did not become healthy after its restart.{problems} Correct the "
        "spec, or set it back; the operator then restarts this member first. If its data is damaged, delete its PVC "
        "and its pod."
    )


def _not_updated(roll: _Rollout) -> Plan | None:
    """All are healthy: does each member that was restarted run the version?"""
    other = [slot for slot in roll.members.voters if slot not in roll.outdated and slot.version != roll.s.version]
    by_digest = bool(roll.s.cluster.spec_image)
    if other and roll.outdated and (roll.phase is Phase.UPGRADING or by_digest):
        told = ", ".join(f"{slot.name} reports {slot.version}" for slot in other)
        although = "spec.version is" if by_digest else "its image is tagged"
        return roll.stops(
            f"Rollout stopped, {roll.progress}: {told} although {although} {roll.s.version}. Correct "
            "spec.version or the image."
        )
    return None


def _phase(s: Situation, outdated: list[MemberSlot]) -> Phase:
    if not outdated and (phase := phase_in_progress(s)):
        return phase
    other = any(slot.version and slot.version != s.version for slot in outdated)
    return Phase.UPGRADING if _is_upgrading(s) or other else Phase.RESTARTING


def phase_in_progress(s: Situation) -> Phase | None:
    """The phase of the rollout that the status reports; None when it reports another phase."""
    return next((phase for phase in (Phase.UPGRADING, Phase.RESTARTING) if s.observed.memory.phase == phase), None)


def _is_upgrading(s: Situation) -> bool:
    upgrade = s.observed.memory.upgrade
    return upgrade is not None and upgrade.in_progress


def _voters(members: Membership, outdated: list[MemberSlot]) -> list[Voter]:
    managed = [
        Voter(slot.member.id, slot.name, slot.dependable, slot.applied, slot.leads, slot not in outdated, slot.ordinal)
        for slot in members.voters
        if slot.member
    ]
    # Nothing is known of unmanaged members, so they count as not healthy.
    return managed + [Voter(one.id, one.name, False, updated=True) for one in members.unmanaged_voters]


def _is_coming(s: Situation, slot: MemberSlot) -> bool:
    pod = slot.pod
    if pod is not None and not pod.deleting:
        # A node with room may take longer to come.
        patience = _KUBELET_PATIENCE if pod.problem and pod.scheduled else PATIENCE
        return s.observed.now - pod.created < patience
    return not _is_degraded_for_long(s)


def _is_degraded_for_long(s: Situation) -> bool:
    since = s.observed.memory.degraded_since
    return since is not None and s.observed.now - since > PATIENCE


def _is_stuck(roll: _Rollout, slot: MemberSlot, pod: Pod) -> bool:
    """Whether a restart would help and do no harm. A pod on an unreachable node would be lost for good."""
    s = roll.s
    if slot.dependable or slot.leads or pod.deleting or pod.node in (NodeState.UNREACHABLE, NodeState.GONE):
        return False
    if not pod.scheduled or pod.problem or pod.crashed:
        return True
    # An answer may have been missed. Beside another unhealthy member, it is not known how long this one is silent.
    alone = all(other.dependable for other in roll.members.voters if other is not slot)
    long = _is_degraded_for_long(s) and s.observed.now - pod.created > PATIENCE
    return alone and long and pod.node is NodeState.READY
