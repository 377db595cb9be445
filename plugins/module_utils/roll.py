"""Who restarts next, when pods are not what the spec asks for: a version, an option, a resource, a label.

One member at a time, and only while all the others serve: followers first, the leader last, after it has handed
leadership over to one that has been renewed. One that does not come back stops the roll.
"""

from __future__ import annotations

from . import manifests
from .kube import Manifest
from .observed import Observed
from .plan import WATCHFUL, Phase, Plan, Step
from .spec import Cluster
from .team import Seat, Team

_BEHIND = 1000  # entries that a member may be behind the others and still be called in sync
_ROLLING = (Phase.UPGRADING, Phase.RESTARTING)


def change(cluster: Cluster, seen: Observed, team: Team, objects: tuple[Manifest, ...]) -> Plan | None:
    """The next restart, or what it waits for; None when every pod is as it should be.

    `objects` are those that must change first, so that a pod that restarts finds what it is to become.
    """
    wanted = manifests.template_hash(cluster)
    stale = [seat for seat in team.voters if seat.pod and seat.pod.template_hash != wanted]
    done = f"{len(team.voters) - len(stale)} of {len(team.voters)} done"
    # One that does not serve can be restarted without harm: so a change that went wrong is taken back where it did.
    silent = [seat for seat in stale if not seat.serves and seat.pod and not seat.pod.deleting]
    if not silent and team.unwell:
        return _waiting(seen, team, done)
    if not stale:
        return None
    phase = Phase.UPGRADING if any(seat.version != cluster.version for seat in stale) else Phase.RESTARTING
    if objects:
        message = f"The settings of {', '.join(seat.name for seat in stale)} change."
        return Plan(phase, "ChangingSettings", message, Step.UPDATE, apply=objects)
    late = [seat.name for seat in team.voters if not silent and _is_behind(team, seat)]
    if late:
        return Plan(phase, "WaitingForMember", f"Waiting for {', '.join(late)} to be in sync: {done}.")
    return _restart(cluster, team, stale, phase)


def _restart(cluster: Cluster, team: Team, stale: list[Seat], phase: Phase) -> Plan:
    seat = min(stale, key=lambda seat: (seat.serves, seat.leads, -seat.ordinal))
    renewed = [other for other in team.voters if other.serves and other not in stale]
    others = [other for other in team.voters if other.serves and other != seat]
    heir = max(renewed or others, key=_applied, default=None)
    doing = f"moving to {cluster.version}" if phase is Phase.UPGRADING else "taking up the new settings"
    message = f"{seat.name} restarts, {doing}: {len(team.voters) - len(stale)} of {len(team.voters)} done."
    lead = heir.id if seat.leads and heir else ""
    return Plan(phase, "RestartingMember", message, Step.ROLL, lead=lead, delete_pods=(seat.name,))


def _waiting(seen: Observed, team: Team, done: str) -> Plan | None:
    """A member that was restarted is on its way, or does not come back."""
    if seen.phase not in _ROLLING:
        return None
    phase, names = Phase(seen.phase), ", ".join(team.unwell)
    silent = [seat for seat in team.voters if not seat.serves]
    troubles = "; ".join(f"{seat.name}: {seat.trouble}" for seat in silent if seat.trouble)
    if any(seat.pod is None or seat.pod.deleting or seen.is_young(seat.pod.created) for seat in silent):
        return Plan(phase, "WaitingForMember", f"Waiting for {names} to serve: {done}. {troubles}".strip())
    message = (
        f"{names} did not come back, so no other member is restarted: {done}. {troubles} Correct the spec, or set it "
        "back to what it was; this member is restarted first then."
    )
    return Plan(phase, "RollStopped", message, requeue=WATCHFUL)


def _is_behind(team: Team, seat: Seat) -> bool:
    return max(map(_applied, team.voters)) - _applied(seat) > _BEHIND


def _applied(seat: Seat) -> int:
    return seat.answer.status.raft_applied_index if seat.answer and seat.answer.status else 0
