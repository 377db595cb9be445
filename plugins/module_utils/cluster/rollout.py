"""Who restarts next, when pods are not what the spec asks for: a version, an option, a resource, a label. Pure.

One member at a time, and only while all the others serve: followers first, the leader last, after it has handed
leadership over to one that has been renewed. One that does not come back stops the roll.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ..api.cluster import Cluster
from ..etcd.rollout import Voter, heir, objection, order
from ..kube.manifest import Manifest
from .observation import Node, Observed, Pod
from .plan import WATCHFUL, Phase, Plan, Step
from .slots import Seat, Team

PATIENCE = timedelta(minutes=2)  # how long a pod may take before its silence means something
_TOLD = timedelta(seconds=15)  # … and before what its kubelet says of it does, such as that there is no such image
ROLLING = (Phase.UPGRADING, Phase.RESTARTING)


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
