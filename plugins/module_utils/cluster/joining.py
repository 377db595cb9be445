"""How a member joins and leaves: learner, catching up, promotion, removal. One change of membership at a time. Pure."""

from __future__ import annotations

from datetime import timedelta

from ..plan import Plan, Ref
from . import desired
from .actions import AddLearner, CancelDowngrade, Objects, PromoteLearner, RemoveMember, ReplaceMember, UpdateObjects
from .loss import CLAIM_DELETED, DATA_GONE
from .manifests import template_hash
from .membership import Membership, MemberSlot
from .memory import Join
from .observation import Pod
from .plan import Phase, Reason
from .situation import Situation

# How long a learner may take to start and catch up before it is removed, and until it is tried again.
PATIENCE = timedelta(minutes=10)


def objects(s: Situation, members: Membership, *, joining: str = "", leaving: str = "") -> Objects:
    """The objects that must change when a member joins or leaves, or for the members there are."""
    return desired.changed(desired.for_members(s, members, desired.Change(joining, leaving)), s)


def add_learner(s: Situation, members: Membership, name: str) -> AddLearner:
    """Add a member as a learner in an empty slot."""
    return AddLearner(name, objects(s, members, joining=name), *_leftovers(s, name))


def replace_member(s: Situation, members: Membership, slot: MemberSlot) -> ReplaceMember:
    """Remove a member and add a learner in its slot."""
    changed = objects(s, members, joining=slot.name, leaving=slot.id)
    return ReplaceMember(slot.id, slot.name, changed, *_leftovers(s, slot.name))


def remove_member(s: Situation, members: Membership, slot: MemberSlot, *, keep_claim: bool = False) -> RemoveMember:
    """Remove a member; its PVC too, unless its slot is still wanted."""
    claims = () if keep_claim else desired.leftover_claims(s, members, leaving=slot.id)
    return RemoveMember(slot.id, objects(s, members, leaving=slot.id), claims)


def learner(s: Situation, members: Membership, slot: MemberSlot) -> Plan:
    """What a learner needs next, or whether it is removed."""
    return _withdraw(s, members, slot) or _admit(s, members, slot) or _advance(s, members, slot)


def join_of(s: Situation, plan: Plan) -> Join | None:
    """What the status remembers of a learner: since when it joins, or that its join failed."""
    known = s.observed.memory.join
    if plan.reason is Reason.JOIN_FAILED:
        removed = plan.action.member_id if isinstance(plan.action, RemoveMember) else ""
        failed = Join(removed, s.observed.now, failed=True, generation=s.cluster.generation)
        return known if known and known.failed else failed
    if s.membership is None:
        return known
    leaving = plan.action.member_id if isinstance(plan.action, RemoveMember | ReplaceMember) else ""
    joining = next((slot.id for slot in s.membership.learners if slot.id != leaving), "")
    if not joining:
        return None
    return known if known and known.member == joining else Join(joining, s.observed.now)


def _withdraw(s: Situation, members: Membership, slot: MemberSlot) -> Plan | None:
    """Whether a learner is of no use any more."""
    name, phase = slot.name, _phase(s)
    if slot.ordinal >= s.cluster.size:
        message = f"Removing learner {name}: spec.size is {s.cluster.size}."
        return Plan(Phase.SCALING, Reason.REMOVING_MEMBER, message, remove_member(s, members, slot))
    if slot.lost and slot.member and slot.member.name:  # it had started, and its ID is spent
        if not members.undependable and not s.has_foreign_claim(name):
            reason = Reason.ADDING_MEMBER if phase is Phase.SCALING else Reason.REPLACING_MEMBER
            return Plan(phase, reason, f"Replacing learner {name}: {slot.lost}.", replace_member(s, members, slot))
        action = remove_member(s, members, slot, keep_claim=True)
        return Plan(phase, Reason.REMOVING_MEMBER, f"Removing learner {name}: {slot.lost}.", action)
    known = s.observed.memory.join
    if known and known.member == slot.id and (known.failed or s.observed.now - known.since > PATIENCE):
        why = _what_is_known(slot) or f"{name} did not catch up."
        message = f"Removing learner {name}: it did not join within {PATIENCE.seconds // 60} minutes. {why}"
        action = remove_member(s, members, slot, keep_claim=True)
        return Plan(Phase.DEGRADED, Reason.JOIN_FAILED, message, action)
    return None


def _admit(s: Situation, members: Membership, slot: MemberSlot) -> Plan | None:
    """Cancel a downgrade because of which the learner can't start. Later it is enabled again, if it is still needed."""
    if not members.downgrade or (slot.member and slot.member.name):
        return None
    message = (
        f"Cancelling the pending downgrade to {members.downgrade}: until it ends no member can join, and etcd does not "
        f"end it before {slot.name} has started."
    )
    return Plan(_phase(s), Reason.CANCELLING_DOWNGRADE, message, CancelDowngrade())


def _advance(s: Situation, members: Membership, slot: MemberSlot) -> Plan:
    name, phase = slot.name, _phase(s)
    changed = objects(s, members)
    if slot.dependable and _may_be_promoted(members, slot) and not members.undependable:
        message = f"Promoting learner {name}: it is in sync."
        return Plan(phase, Reason.PROMOTING_MEMBER, message, PromoteLearner(slot.id, changed))
    if changed:
        return Plan(phase, Reason.ADDING_MEMBER, f"{name} is a learner now.", UpdateObjects(changed))
    if slot.pod and (message := _stuck(s, slot.pod)):
        action = UpdateObjects(stuck_pods=(slot.pod.ref,))
        return Plan(phase, Reason.REPLACING_MEMBER, message, action)
    if slot.lost not in ("", DATA_GONE, CLAIM_DELETED):  # its pod existed before, and has data of another member
        claims, pods = _leftovers(s, name)
        message = f"Starting {name} with an empty volume: {slot.lost}."
        return Plan(phase, Reason.REPLACING_MEMBER, message, UpdateObjects((), claims, pods))
    if members.undependable:
        message = f"Learner {name} is promoted when {', '.join(members.undependable)} is healthy again."
        return Plan(phase, Reason.WAITING_FOR_VOTERS, message)
    return Plan(phase, Reason.WAITING_FOR_LEARNER, _waiting(members, slot))


def _stuck(s: Situation, pod: Pod) -> str:
    """What is told when a learner's pod must be recreated; "" when it may start."""
    if pod.problem and not _is_current(s, pod):
        return f"Restarting {pod.name} with the current spec: {pod.problem}."
    claim = s.observed.claim(pod.name)
    if claim and claim.deleting and pod.scheduled and not pod.deleting and (pod.crashed or not pod.started):
        # Each waits for the other, and meanwhile the StatefulSet creates no pod of another member either. If etcd has
        # run, then with the data of the former member.
        return f"Deleting pod {pod.name}, in which etcd does not run: its PVC is being deleted."
    return ""


def _waiting(members: Membership, slot: MemberSlot) -> str:
    status = slot.view.status if slot.view else None
    goal = max((voter.view.status.revision for voter in members.voters if voter.view and voter.view.status), default=0)
    progress = f" (revision {status.revision} of {goal})" if status and status.revision < goal else ""
    return f"Waiting for learner {slot.name} to catch up{progress}. {_what_is_known(slot)}".strip()


def _may_be_promoted(members: Membership, slot: MemberSlot) -> bool:
    """In sync for a promotion: the share of the log that etcd itself asks for."""
    voters = [voter.view.status for voter in members.voters if voter.view and voter.view.status]
    leader = max((status.raft_index for status in voters), default=0)
    return slot.applied >= leader * 0.9


def _leftovers(s: Situation, name: str) -> tuple[tuple[Ref, ...], tuple[Ref, ...]]:
    """The PVC and the pod of a former member in a slot that a new one takes."""
    claim, pod = s.observed.claim(name), s.observed.pod(name)
    own = claim is not None and claim.cluster_uid == s.cluster.uid and not claim.deleting
    claims = (Ref(claim.name, claim.uid),) if claim and own else ()
    return claims, (Ref(name, pod.uid),) if pod else ()


def _phase(s: Situation) -> Phase:
    """The member list does not tell why a learner was added; the status does."""
    known = (Phase.REPAIRING, Phase.UPGRADING, Phase.RESTARTING)
    return next((phase for phase in known if s.observed.memory.phase == phase), Phase.SCALING)


def _is_current(s: Situation, pod: Pod) -> bool:
    return s.stateful_set is None or pod.deleting or pod.template_hash == template_hash(s.stateful_set)


def _what_is_known(slot: MemberSlot) -> str:
    if slot.pod is None:
        return f"{slot.name} has no pod yet."
    problem = slot.pod.problem or (slot.view.error if slot.view else "")
    return f"{slot.name}: {problem}." if problem else ""
