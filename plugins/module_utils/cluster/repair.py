"""Replacing a voter that is permanently lost: before everything else, and only while the others keep quorum. Pure."""

from __future__ import annotations

from ..etcd.membership import quorum
from ..plan import Plan
from .joining import remove, replace_member
from .membership import Membership, MemberSlot
from .plan import Phase
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
        return remove(s, members, slot, message)
    if members.has_learner or others:
        # No member may join now, but the removal of one that will never come back makes the quorum smaller.
        message = f"Removing {slot.name}: {slot.lost}."
        return remove(s, members, slot, message, phase=Phase.REPAIRING, data=False)
    return replace_member(s, members, slot, Phase.REPAIRING, f"Replacing {slot.name}: {slot.lost}.")
