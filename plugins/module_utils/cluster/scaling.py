"""The size: adding members to missing slots, removing the highest one, deleting PVCs that are left over. Pure.

Only called while every voter is healthy and no learner is joining.
"""

from __future__ import annotations

from ..plan import WATCHFUL, Plan
from . import foreign_objects
from .actions import UpdateObjects
from .desired import leftover_claims
from .joining import PATIENCE, add_learner, objects, remove_member
from .membership import Membership
from .plan import Phase, Reason
from .situation import Situation


def resize(s: Situation, members: Membership) -> Plan | None:
    """The next change towards spec.size; None when the size is right."""
    missing = [number for number in range(s.cluster.size) if number not in members.ordinals]
    if missing:
        return _grow(s, members, s.cluster.pod_name(missing[0]))
    if members.ordinals and max(members.ordinals) >= s.cluster.size:
        last = max(members.voters, key=lambda slot: slot.ordinal)
        message = f"Removing {last.name}: scaling down to {s.cluster.size}, {len(members.voters) - 1} members remain."
        return Plan(Phase.SCALING, Reason.REMOVING_MEMBER, message, remove_member(s, members, last))
    if leftover := leftover_claims(s, members):
        message = f"Deleting PVC {', '.join(ref.name for ref in leftover)}: its member has left."
        return Plan(Phase.SCALING, Reason.CLEANING_UP, message, UpdateObjects(objects(s, members), leftover))
    return None


def is_short(s: Situation, members: Membership) -> bool:
    """Whether a slot is empty that had a member, or there are too few members to spare one for a restart."""
    slots = range(min(s.cluster.size, s.replicas))
    empty = any(number not in members.ordinals for number in slots)
    few = len(members.voters) < s.cluster.size and (members.votes < 3 or s.in_memory)
    return (empty or few) and not members.undependable


def _grow(s: Situation, members: Membership, name: str) -> Plan | None:
    claim = s.observed.claim(name)
    if claim is not None and not claim.cluster_uid:
        told = foreign_objects.told([f"PVC {claim.name}"])
        return Plan(Phase.UNSUPPORTED, Reason.FOREIGN_OBJECT, f"{name} can't join. {told}", requeue=WATCHFUL)
    if claim is not None and claim.cluster_uid != s.cluster.uid:
        message = (
            f"{name} can't join: PVC {claim.name} holds data of an earlier cluster of this name and is never adopted. "
            "Delete this PVC if the data is not needed."
        )
        return Plan(Phase.UNSUPPORTED, Reason.FOREIGN_DATA, message, requeue=WATCHFUL)
    join = s.observed.memory.join
    failed = join if join and join.failed and join.generation == s.cluster.generation else None
    if failed and s.observed.now - failed.since < PATIENCE:
        message = (
            f"A learner did not join and was removed. It is tried again at {failed.since + PATIENCE:%H:%M} UTC, or "
            "when the spec changes. The event JoinFailed has the cause."
        )
        return Plan(Phase.DEGRADED, Reason.JOIN_FAILED, message, requeue=WATCHFUL)
    if members.has_learner:
        return None
    again = s.observed.pod(name) is not None or claim is not None
    phase, doing = (Phase.REPAIRING, f"Adding {name} again") if again else (Phase.SCALING, f"Adding {name}")
    message = f"{doing} as a learner: member {len(members.ordinals) + 1} of {s.cluster.size}."
    reason = Reason.ADDING_MEMBER if phase is Phase.SCALING else Reason.REPLACING_MEMBER
    return Plan(phase, reason, message, add_learner(s, members, name))
