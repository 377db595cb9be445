"""Who restarts next, when pods are not what the spec asks for: a version, an option, a resource, a label. Pure.

One member at a time, and only while all the others serve: followers first, the leader last, after it has handed
leadership over to one that has been renewed. One that does not come back stops the roll.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from .kube import Manifest
from .manifests import quorum
from .observed import Node, Observed, Pod
from .plan import WATCHFUL, Phase, Plan, Step
from .spec import Cluster
from .team import Seat, Team

PATIENCE = timedelta(minutes=2)  # how long a pod may take before its silence means something
_TOLD = timedelta(seconds=15)  # … and before what its kubelet says of it does, such as that there is no such image
# Entries that a member may be behind and still be called in sync: etcd keeps as many for those that are.
_BEHIND = 5000
ROLLING = (Phase.UPGRADING, Phase.RESTARTING)


@dataclass(frozen=True)
class Voter:
    """What matters of a voter when it, or another one, is to restart."""

    id: int
    name: str
    healthy: bool
    applied: int = 0
    leads: bool = False
    renewed: bool = False  # it is what it is to become
    place: int = 0  # among equals the highest goes first


def order(voters: Sequence[Voter]) -> list[Voter]:
    """Those that have yet to restart: who does not serve first, then followers, the leader last."""
    stale = [voter for voter in voters if not voter.renewed]
    return sorted(stale, key=lambda voter: (voter.healthy, voter.leads, -voter.place))


def heir(voters: Sequence[Voter], leader: Voter) -> Voter | None:
    """Who leads when this one goes: the one that knows most, of those that stay if there is any."""
    others = [voter for voter in voters if voter.healthy and voter.id != leader.id and not _is_behind(voters, voter)]
    return max(others, key=lambda voter: (voter.renewed, voter.applied), default=None)


def objection(voters: Sequence[Voter], name: str) -> str:
    """Why a voter must not restart now; "" when it may. Asked again in the moment before it does."""
    others = [voter for voter in voters if voter.name != name]
    own = next((voter for voter in voters if voter.name == name), None)
    ill = [voter.name for voter in others if not voter.healthy]
    if own is not None and not own.healthy:  # what does not serve can't be missed
        left = len(others) - len(ill)
        return "" if left >= quorum(len(voters)) else f"only {left} of {len(voters)} voters would be left"
    if ill:
        return f"{', '.join(ill)} does not serve"
    behind = [voter.name for voter in others if _is_behind(voters, voter)]
    return f"{', '.join(behind)} is not in sync" if behind else ""


def gate(voters: Sequence[Voter], name: str, lead: int = 0) -> Voter | None:
    """Who must lead before this voter restarts; None when it does not lead. ValueError when it must not restart now."""
    if why := objection(voters, name):
        raise ValueError(f"{name} is not restarted: {why}")
    own = next((voter for voter in voters if voter.name == name), None)
    if own is None or not own.leads or len(voters) == 1:
        return None
    chosen = next((voter for voter in voters if voter.id == lead and voter.healthy), None)
    found = chosen or heir(voters, own)
    if found is None:
        raise ValueError(f"{name} is not restarted: it leads, and nobody else can")
    return found


@dataclass(frozen=True)
class _Roll:
    cluster: Cluster
    seen: Observed
    team: Team
    stale: list[Seat]  # those that have yet to restart
    phase: Phase
    voters: list[Voter]

    @property
    def done(self) -> str:
        return f"{len(self.team.voters) - len(self.stale)} of {len(self.team.voters)} done"

    def waits(self, message: str) -> Plan:
        return Plan(self.phase, "WaitingForMember", f"{message}: {self.done}.")

    def stops(self, message: str) -> Plan:
        return Plan(self.phase, "RollStopped", message, requeue=WATCHFUL)


def change(cluster: Cluster, seen: Observed, team: Team, wanted: str, objects: tuple[Manifest, ...]) -> Plan | None:
    """The next restart, or what it waits for; None when every pod is as it should be.

    `wanted` is the hash of what pods are to be made of. `objects` are those that must change before.
    """
    stale = [seat for seat in team.voters if seat.pod and not seat.pod.deleting and seat.pod.template_hash != wanted]
    if not stale and (cluster.target or not (seen.phase in ROLLING or _is_upgrading(seen))):
        return None
    roll = _Roll(cluster, seen, team, stale, _phase(cluster, seen, stale), _voters(team, stale))
    if stale and objects:
        names = ", ".join(seat.name for seat in stale)
        message = f"The settings of {names} change; each restarts when its turn comes."
        return Plan(roll.phase, "ChangingSettings", message, Step.UPDATE, apply=objects)
    return _take_back(roll) or _waiting(roll) or _next(roll)


def _take_back(roll: _Roll) -> Plan | None:
    """Who can't start with what it has goes first: so a change that went wrong is taken back where it did."""
    for seat in roll.stale:
        if seat.pod and _is_stuck(roll.seen, seat, seat.pod) and not objection(roll.voters, seat.name):
            return _restart(roll, seat)
    return None


def _next(roll: _Roll) -> Plan | None:
    if not roll.stale:
        return None
    first = order(roll.voters)[0]
    seat = next(seat for seat in roll.stale if seat.name == first.name)
    if why := objection(roll.voters, seat.name):
        return roll.waits(f"{seat.name} restarts next, but {why}")
    return _restart(roll, seat)


def _restart(roll: _Roll, seat: Seat) -> Plan:
    own = next(voter for voter in roll.voters if voter.name == seat.name)
    leads = heir(roll.voters, own) if own.leads else None
    doing = f"with {roll.cluster.version}" if roll.phase is Phase.UPGRADING else "with the new settings"
    after = f", after handing leadership over to {leads.name}" if leads else ""
    return Plan(
        roll.phase,
        "RestartingMember",
        f"{seat.name} restarts {doing}{after}: {roll.done}.",
        Step.ROLL,
        restart=seat.name,
        restart_uid=seat.pod.uid if seat.pod else "",
        lead=f"{leads.id:x}" if leads else "",
    )


def _waiting(roll: _Roll) -> Plan | None:
    """Somebody is on its way, or does not come back."""
    silent = [seat for seat in roll.team.voters if not seat.serves]
    if not silent:
        return _not_renewed(roll)
    names, troubles = ", ".join(seat.name for seat in silent), _troubles(silent)
    if any(_is_coming(roll.seen, seat) for seat in silent):
        return Plan(roll.phase, "WaitingForMember", f"Waiting for {names} to serve: {roll.done}.{troubles}")
    if all(seat in roll.stale for seat in silent):  # not our doing, and the spec is not at fault
        message = f"{names} does not serve, so no member is restarted until it does: {roll.done}.{troubles}"
        return Plan(roll.phase, "WaitingForMember", message, requeue=WATCHFUL)
    return roll.stops(
        f"{names} did not come back, so no other member is restarted: {roll.done}.{troubles} Correct the spec, or set "
        "it back to what it was; this member is restarted first then."
    )


def _not_renewed(roll: _Roll) -> Plan | None:
    """All serve; but is each of those whose turn has been what it was to become?"""
    version = roll.cluster.version
    other = [seat for seat in roll.team.voters if seat not in roll.stale and seat.version != version]
    if other and roll.stale and roll.phase is Phase.UPGRADING:
        told = ", ".join(f"{seat.name} reports {seat.version}" for seat in other)
        return roll.stops(
            f"{told} though its image is tagged {version}, so no other member is restarted: {roll.done}. Correct "
            "spec.version or the image."
        )
    return None


def _phase(cluster: Cluster, seen: Observed, stale: list[Seat]) -> Phase:
    if not stale and seen.phase in ROLLING:
        return Phase(seen.phase)
    other = any(seat.version and seat.version != cluster.version for seat in stale)
    return Phase.UPGRADING if _is_upgrading(seen) or other else Phase.RESTARTING


def _is_upgrading(seen: Observed) -> bool:
    return seen.upgrade is not None and seen.upgrade.completed is None


def _voters(team: Team, stale: list[Seat]) -> list[Voter]:
    ours = [
        Voter(seat.member.id, seat.name, seat.serves, seat.applied, seat.leads, seat not in stale, seat.ordinal)
        for seat in team.voters
        if seat.member
    ]
    # Of strangers nothing is known, so they are not counted upon.
    return ours + [Voter(each.id, each.name, False, renewed=True) for each in team.strangers if not each.is_learner]


def _troubles(seats: list[Seat]) -> str:
    told = "; ".join(f"{seat.name}: {seat.trouble}" for seat in seats if seat.trouble)
    return f" {told}." if told else ""


def _is_coming(seen: Observed, seat: Seat) -> bool:
    pod = seat.pod
    if pod is not None and not pod.deleting:
        # A node with room may be on its way for longer.
        return seen.now - pod.created < (_TOLD if pod.problem and pod.scheduled else PATIENCE)
    return not _is_unwell_for_long(seen)


def _is_unwell_for_long(seen: Observed) -> bool:
    since = seen.degraded_since
    return since is not None and seen.now - since > PATIENCE


def _is_stuck(seen: Observed, seat: Seat, pod: Pod) -> bool:
    """Would a restart help, and do no harm? A pod of a node that is not heard of would be lost for good."""
    if seat.serves or seat.leads or pod.deleting or pod.node in (Node.UNREACHABLE, Node.GONE):
        return False
    if not pod.scheduled or pod.problem or pod.crashed:
        return True
    # An answer may have been missed.
    return pod.node is Node.WELL and _is_unwell_for_long(seen) and seen.now - pod.created > PATIENCE


def _is_behind(voters: Sequence[Voter], voter: Voter) -> bool:
    return max(other.applied for other in voters) - voter.applied > _BEHIND
