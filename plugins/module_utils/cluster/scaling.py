"""Which change of membership comes next: one at a time, the most urgent first, and none that could cost the quorum.

Repair, then finish what is under way, then the size that is wanted. Only called while a quorum serves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from ..api.cluster import Cluster
from ..etcd.membership import quorum
from . import desired, upgrade
from . import rollout as roll
from . import volumes as expansion
from .loss import GOING, GONE
from .manifests import template_hash
from .observation import Join, Observed, Pod
from .plan import WATCHFUL, Phase, Plan, Step
from .slots import Seat, Team

# Nothing goes on until somebody has done something; but the size may still be changed.
STUCK = ("VersionRefused", "UpgradeWaits", "SnapshotFailed", "CannotRestart")
# How long a learner may take to start and catch up before it is taken back, and until it is tried again.
PATIENCE = timedelta(minutes=10)


@dataclass(frozen=True)
class Case:
    """What is decided upon."""

    cluster: Cluster
    seen: Observed
    team: Team

    def objects(self, *, coming: str = "", going: str = "", renewed: str = "") -> desired.Manifests:
        """The objects that must change when one member comes, goes or is renewed, or for those there are."""
        change = desired.Change(coming, going, renewed)
        return desired.changed(desired.for_team(self.cluster, self.seen, self.team, change), self.seen)

    def leftover_claims(self, *, going: str = "") -> tuple[str, ...]:
        return desired.leftover_claims(self.cluster, self.seen, self.team, going=going)


def change(cluster: Cluster, seen: Observed, team: Team) -> Plan | None:
    """The next change, or what it waits for; None when the members are as they should be or nothing can be done."""
    case = Case(cluster, seen, team)
    if lost := [seat for seat in team.voters if seat.lost]:
        return _repair(case, lost[0])
    pending = _another_version(case) if cluster.target else None
    if team.learners:
        corrected = pending if pending and pending.step is Step.UPDATE else None
        return corrected or _take_back(case, team.learners[0]) or _go_on(case, team.learners[0])
    moving = (
        (_resize(case) if _is_short(case) else None) or (pending if not _is_stuck(pending) else None) or _roll(case)
    )
    if moving and not _is_stuck(moving):
        return moving
    if team.unwell:
        return pending
    return _resize(case) or pending or moving or expansion.change(cluster, seen) or upgrade.outdated(cluster, seen)


def _is_stuck(plan: Plan | None) -> bool:
    return plan is not None and plan.reason in STUCK


def join_of(cluster: Cluster, seen: Observed, team: Team | None, plan: Plan) -> Join | None:
    """What the status is to remember of a learner: since when it is there, or that it was taken back."""
    if plan.reason == "JoinFailed":
        kept = seen.join if seen.join and seen.join.failed else None
        return kept or Join(plan.remove, seen.now, failed=True, generation=cluster.generation)
    if team is None:
        return seen.join
    learner = next((seat.id for seat in team.learners if seat.id != plan.remove), "")
    if not learner:
        return None
    return seen.join if seen.join and seen.join.member == learner else Join(learner, seen.now)


def _another_version(case: Case) -> Plan | None:
    def objects(cluster: Cluster) -> desired.Manifests:
        return replace(case, cluster=cluster).objects()

    return upgrade.prepare(case.cluster, case.seen, case.team, objects)


def _is_short(case: Case) -> bool:
    """Is a place empty that had a member, or are there so few that nobody can be spared?"""
    cluster, team = case.cluster, case.team
    places = range(min(cluster.size, desired.replicas(cluster, case.seen)))
    empty = any(number not in team.ordinals for number in places)
    few = len(team.voters) < cluster.size and (team.votes < 3 or _in_memory(cluster))
    return (empty or few) and not team.unwell


def _in_memory(cluster: Cluster) -> bool:
    return cluster.storage.type == "Memory"


def _roll(case: Case) -> Plan | None:
    """The next restart. Who has its data in memory would lose it, so its place is taken by a member that joins."""
    cluster, seen, team = case.cluster, case.seen, case.team
    wanted = desired.for_team(cluster, seen, team)
    changed = desired.changed(wanted, seen)
    plan = roll.change(cluster, seen, team, template_hash(wanted[-1]), changed)
    if plan is None or plan.step is not Step.ROLL:
        return plan
    if not _in_memory(cluster):
        return replace(plan, apply=case.objects(renewed=plan.restart))
    seat = next(seat for seat in team.voters if seat.name == plan.restart)
    if team.votes < 2:
        message = (
            f"{seat.name} is the only member and has its data in memory, so it can't restart: grow the cluster first."
        )
        return Plan(Phase.UNSUPPORTED, "CannotRestart", message, requeue=WATCHFUL)
    if team.crowded or team.unwell not in ([], [seat.name]):
        others = ", ".join(name for name in team.unwell if name != seat.name) or "a learner of somebody else's"
        message = f"{seat.name} has its data in memory and is replaced when it may be; {others} is in the way."
        return Plan(plan.phase, "RollStopped", message, requeue=WATCHFUL)
    message = f"{plan.message} Its data is in memory, so another member takes its place."
    return replace(_join(case, seat.name, plan.phase, message, remove=seat.id), reason=plan.reason)


def _repair(case: Case, seat: Seat) -> Plan | None:
    """A voter that is lost for good goes first of all: the others are a quorum of fewer then."""
    team = case.team  # it may still serve for a moment
    others_unwell = [name for name in team.unwell if name != seat.name]
    if sum(other.serves for other in team.voters if other != seat) < quorum(team.votes - 1):
        return None
    if seat.healthy and others_unwell:
        return None
    if seat.ordinal >= case.cluster.size:
        return _leave(case, seat, f"Removing {seat.name}: {seat.lost}, and it is not wanted any more.")
    if team.crowded or others_unwell:
        # Nobody may join now, but one who will never come back needs not be waited for.
        plan = _leave(case, seat, f"Removing {seat.name}: {seat.lost}.")
        return replace(plan, phase=Phase.REPAIRING, delete_claims=())
    return _join(case, seat.name, Phase.REPAIRING, f"Replacing {seat.name}: {seat.lost}.", remove=seat.id)


def _take_back(case: Case, learner: Seat) -> Plan | None:
    """Is a learner of no use any more?"""
    seen, name, phase = case.seen, learner.name, _phase(case)
    if learner.ordinal >= case.cluster.size:
        return _leave(case, learner, f"Taking {name} back: it is not wanted any more.")
    if learner.lost and learner.member and learner.member.name:  # it had started, and its ID is spent
        if not case.team.unwell:
            return _join(case, name, phase, f"Replacing {name}: {learner.lost}.", remove=learner.id)
        plan = _leave(case, learner, f"Removing {name}: {learner.lost}.")
        return replace(plan, phase=phase, delete_claims=())
    noted = seen.join if seen.join and seen.join.member == learner.id else None
    if noted and (noted.failed or seen.now - noted.since > PATIENCE):
        why = _what_is_known(learner) or "it did not catch up"
        message = f"{name} could not join within {PATIENCE.seconds // 60} minutes ({why}), so it is taken back."
        plan = _leave(case, learner, message)
        return replace(plan, phase=Phase.DEGRADED, reason="JoinFailed", delete_claims=())
    return None


def _go_on(case: Case, learner: Seat) -> Plan:
    """A learner is on its way: what it needs next."""
    name, phase, team = learner.name, _phase(case), case.team
    changed = case.objects()
    if learner.serves and _in_sync(team, learner) and not team.unwell:
        message = f"{name} has caught up; it votes from now on."
        return Plan(phase, "PromotingMember", message, Step.PROMOTE, promote=learner.id, apply=changed)
    if changed:
        return Plan(phase, "AddingMember", f"{name} is a learner now.", Step.UPDATE, apply=changed)
    if learner.pod and learner.pod.problem and not _is_current(case, learner.pod):
        message = f"Starting {name} with what the spec asks for now: {learner.pod.problem}."
        return Plan(phase, "ReplacingMember", message, Step.UPDATE, delete_pods=(name,))
    if learner.lost not in ("", GONE, GOING):  # its pod was there before it was added, and has data of another member
        message = f"Starting {name} with an empty disk: {learner.lost}."
        return _afresh(case, name, Plan(phase, "ReplacingMember", message, Step.UPDATE))
    if team.unwell:
        message = f"{name} is a learner; it will vote when {', '.join(team.unwell)} serves again."
        return Plan(phase, "WaitingForVoters", message)
    message = f"Waiting for {name}, a learner, to start and catch up. {_what_is_known(learner)}".strip()
    return Plan(phase, "WaitingForLearner", message)


def _resize(case: Case) -> Plan | None:
    """All voters are well and nobody is on the way: is the size as wanted?"""
    cluster, team = case.cluster, case.team
    missing = [number for number in range(cluster.size) if number not in team.ordinals]
    if missing:
        return _grow(case, cluster.pod_name(missing[0]))
    if team.ordinals and max(team.ordinals) >= cluster.size:
        last = max(team.voters, key=lambda seat: seat.ordinal)
        message = f"Removing {last.name}: {len(team.voters) - 1} members then, {cluster.size} are wanted."
        return _leave(case, last, message)
    if leftover := case.leftover_claims():
        message = f"Deleting {', '.join(leftover)}, whose members have left."
        return Plan(Phase.SCALING, "TidyingUp", message, Step.UPDATE, apply=case.objects(), delete_claims=leftover)
    return None


def _grow(case: Case, name: str) -> Plan | None:
    cluster, seen = case.cluster, case.seen
    claim = seen.claim(name)
    if claim is not None and claim.cluster_uid != cluster.uid:
        message = (
            f"{name} can't join: {claim.name} holds data of an earlier cluster of this name, which is never taken over "
            "silently. Delete this claim if the data is not needed."
        )
        return Plan(Phase.UNSUPPORTED, "ForeignData", message, requeue=WATCHFUL)
    failed = seen.join if seen.join and seen.join.failed else None
    if failed and failed.generation == cluster.generation and seen.now - failed.since < PATIENCE:
        message = (
            f"A member could not join and was taken back. It is tried again at {failed.since + PATIENCE:%H:%M} UTC, or "
            "when the spec changes; the events tell why it failed."
        )
        return Plan(Phase.DEGRADED, "JoinFailed", message, requeue=WATCHFUL)
    if case.team.crowded:
        return None
    anew = seen.pod(name) is not None or claim is not None
    phase, doing = (Phase.REPAIRING, f"Adding {name} anew") if anew else (Phase.SCALING, f"Adding {name}")
    message = f"{doing} as a learner: {len(case.team.ordinals) + 1} of {cluster.size} members then."
    return _join(case, name, phase, message)


def _join(case: Case, name: str, phase: Phase, message: str, *, remove: str = "") -> Plan:
    reason = "AddingMember" if phase is Phase.SCALING else "ReplacingMember"
    changed = case.objects(coming=name, going=remove)
    return _afresh(case, name, Plan(phase, reason, message, Step.JOIN, remove, name, apply=changed))


def _leave(case: Case, seat: Seat, message: str) -> Plan:
    return Plan(
        Phase.SCALING,
        "RemovingMember",
        message,
        Step.LEAVE,
        remove=seat.id,
        apply=case.objects(going=seat.id),
        delete_claims=case.leftover_claims(going=seat.id),
    )


def _afresh(case: Case, name: str, plan: Plan) -> Plan:
    """With nothing of a former member in the way of a new one."""
    claim, pod = case.seen.claim(name), case.seen.pod(name)
    ours = claim is not None and claim.cluster_uid == case.cluster.uid and not claim.deleting
    claims = (claim.name,) if claim and ours else ()
    return replace(plan, delete_claims=claims, delete_pods=(name,) if pod else ())


def _phase(case: Case) -> Phase:
    """A learner's list entry does not tell why it was added; the status does."""
    known = (Phase.REPAIRING, Phase.UPGRADING, Phase.RESTARTING)
    return next((phase for phase in known if case.seen.phase == phase), Phase.SCALING)


def _is_current(case: Case, pod: Pod) -> bool:
    live = case.seen.objects.get(f"StatefulSet/{case.cluster.name}")
    return live is None or pod.deleting or pod.template_hash == template_hash(live)


def _in_sync(team: Team, learner: Seat) -> bool:
    """Near enough to be promoted; etcd itself looks again."""
    voters = [seat.answer.status for seat in team.voters if seat.answer and seat.answer.status]
    leader = max((status.raft_index for status in voters), default=0)
    own = learner.answer.status.raft_applied_index if learner.answer and learner.answer.status else 0
    return own >= leader * 0.9


def _what_is_known(seat: Seat) -> str:
    if seat.pod is None:
        return f"{seat.name} has no pod yet."
    if seat.pod.problem:
        return f"{seat.name}: {seat.pod.problem}"
    if seat.answer is not None and seat.answer.error:
        return f"{seat.name}: {seat.answer.error}"
    return ""
