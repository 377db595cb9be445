"""Replacing a voter that is permanently lost: before everything else, and only while the others keep quorum. Pure."""

from __future__ import annotations

from ..etcd.membership import quorum
from ..plan import Plan
from .joining import remove_member, replace_member
from .membership import Membership, MemberSlot
from .plan import Phase, Reason
from .situation import Situation


def repair(s: Situation, members: Membership) -> Plan | None:
    """Replace the first voter that is lost; None when none is."""
    lost = [slot for slot in members.voters if slot.lost]
    return replace_lost(s, members, lost[0]) if lost else None


def replace_lost(s: Situation, members: Membership, slot: MemberSlot) -> Plan | None:
    """None while removing it would be unsafe: it may still be healthy for a moment."""
    others = [name for name in members.undependable if name != slot.name]
    if sum(other.dependable for other in members.voters if other != slot) < quorum(members.votes - 1):
        return None
    if slot.healthy and others:
        return None
    if slot.ordinal >= s.cluster.size:
        message = f"Removing {slot.name}: {slot.lost}, and spec.size is {s.cluster.size}."
        return Plan(Phase.SCALING, Reason.REMOVING_MEMBER, message, remove_member(s, members, slot))
    if members.has_learner or others or s.has_foreign_claim(slot.name):
        # No member may join now, but the removal of one that will never come back makes the quorum smaller.
        action = remove_member(s, members, slot, keep_claim=True)
        return Plan(Phase.REPAIRING, Reason.REMOVING_MEMBER, f"Removing {slot.name}: {slot.lost}.", action)
    message = f"Replacing {slot.name}: {slot.lost}."
    return Plan(Phase.REPAIRING, Reason.REPLACING_MEMBER, message, replace_member(s, members, slot))
