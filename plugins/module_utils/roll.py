"""Who restarts next, when pods are not what the spec asks for: a version, an option, a resource, a label.

One member at a time, and only while all the others serve: followers first, the leader last, after it has handed
leadership over to one that has been renewed. One that does not come back stops the roll.
"""

from __future__ import annotations

from . import manifests
from .observed import Observed
from .plan import SOON, WATCHFUL, Phase, Plan, Step
from .spec import Cluster
from .team import Seat, Team

_BEHIND = 1000  # entries that a member may be behind the others and still be called in sync
ROLLING = (Phase.UPGRADING, Phase.RESTARTING)


def change(cluster: Cluster, seen: Observed, team: Team) -> Plan | None:
    """The next restart, or what it waits for; None when every pod is as it should be."""
    wanted = manifests.template_hash(cluster)
    stale = [seat for seat in team.voters if seat.pod and seat.pod.template_hash != wanted]
    if not stale:
        return _back(cluster, seen, team, "All members have been restarted")
    done = f"{len(team.voters) - len(stale)} of {len(team.voters)} done"
    phase = Phase.UPGRADING if any(seat.version != cluster.version for seat in stale) else Phase.RESTARTING
    # One that does not serve can be restarted without harm: so a change that went wrong is taken back where it did.
    silent = [seat for seat in stale if not seat.serves]
    if silent:
        if silent[0].pod and silent[0].pod.deleting:
            return _back(cluster, seen, team, done)
        message = f"Restarting {silent[0].name}, which does not serve: {done}."
        return Plan(phase, "RestartingMember", message, Step.ROLL, delete_pods=(silent[0].name,))
    if waiting := _back(cluster, seen, team, done):
        return waiting
    if team.unwell:
        return None
    late = [seat.name for seat in team.voters if max(map(_applied, team.voters)) - _applied(seat) > _BEHIND]
    if late:
        return Plan(phase, "WaitingForMember", f"Waiting for {', '.join(late)} to be in sync: {done}.")
    seat = min(stale, key=lambda seat: (seat.leads, -seat.ordinal))
    fresh = [other for other in team.voters if other not in stale]
    heir = max(fresh or [other for other in team.voters if other != seat], key=_applied, default=None)
    lead = heir.id if seat.leads and heir else ""
    doing = f"moving to {cluster.version}" if phase is Phase.UPGRADING else "taking up the new settings"
    message = f"{seat.name} restarts, {doing}: {done}."
    return Plan(phase, "RestartingMember", message, Step.ROLL, lead=lead, delete_pods=(seat.name,))


def _back(cluster: Cluster, seen: Observed, team: Team, done: str) -> Plan | None:
    """A member that was restarted is on its way, or does not come back."""
    if seen.phase not in ROLLING or not team.unwell:
        return None
    names = ", ".join(team.unwell)
    young = any(seat.pod is None or seat.pod.deleting or seen.is_young(seat.pod.created) for seat in team.voters if not seat.serves)
    troubles = "; ".join(f"{seat.name}: {seat.trouble}" for seat in team.voters if not seat.serves and seat.trouble)
    if young:
        message = f"Waiting for {names}: {done}. {troubles}".strip()
        return Plan(Phase(seen.phase), "WaitingForMember", message, requeue=SOON)
    message = (
        f"{names} did not come back, so no other member is restarted: {done}. {troubles} Correct the spec, or set it back "
        "to what it was: this member is restarted first then."
    )
    return Plan(Phase(seen.phase), "RollStopped", message, requeue=WATCHFUL)


def _applied(seat: Seat) -> int:
    return seat.answer.status.raft_applied_index if seat.answer and seat.answer.status else 0
