"""The order of a rolling restart, and whether a voter may restart now. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .errors import FAILED_PRECONDITION, EtcdError
from .leadership import in_sync, successor
from .membership import display_name, quorum
from .view import ClusterView


@dataclass(frozen=True)
class Voter:
    """What matters of a voter when it, or another one, is to restart."""

    id: int
    name: str
    healthy: bool
    applied: int = 0
    leads: bool = False
    updated: bool = False  # it runs what it should run
    position: int = 0  # among equals the highest restarts first


def voters(view: ClusterView, target: str = "") -> list[Voter]:
    """The voters of a view; with a target version, those that run it already are updated."""
    return [
        Voter(
            id=one.member.id,
            name=display_name(one.member),
            healthy=bool(one.healthy),
            applied=one.applied,
            leads=one.member.id == view.leader_id,
            updated=bool(target) and one.version == target,
            position=position,
        )
        for position, one in enumerate(view.voters)
    ]


def restart_order(found: Sequence[Voter]) -> list[Voter]:
    """The voters that have yet to restart: unhealthy ones first, then followers, the leader last."""
    outdated = [voter for voter in found if not voter.updated]
    return sorted(outdated, key=lambda voter: (voter.healthy, voter.leads, -voter.position))


def objection(found: Sequence[Voter], name: str) -> str:
    """Why a voter must not restart now; "" when it may. Asked again immediately before it does."""
    others = [voter for voter in found if voter.name != name]
    own = next((voter for voter in found if voter.name == name), None)
    unhealthy = [voter.name for voter in others if not voter.healthy]
    if own is not None and not own.healthy:  # an unhealthy member can't be missed
        left = len(others) - len(unhealthy)
        return "" if left >= quorum(len(found)) else f"only {left} of {len(found)} voters would be left"
    if unhealthy:
        return f"{', '.join(unhealthy)} is not healthy"
    behind = [voter.name for voter in others if not in_sync(found, voter)]
    return f"{', '.join(behind)} is not in sync" if behind else ""


def transferee(found: Sequence[Voter], name: str, preferred: int = 0) -> Voter | None:
    """Who must lead before this voter restarts; None when it does not lead. EtcdError when it must not restart now."""
    if why := objection(found, name):
        raise EtcdError(FAILED_PRECONDITION, f"{name} is not restarted: {why}")
    own = next((voter for voter in found if voter.name == name), None)
    if own is None or not own.leads or len(found) == 1:
        return None
    chosen = next((voter for voter in found if voter.id == preferred and voter.healthy), None)
    next_leader = chosen or successor(found, own.id)
    if next_leader is None:
        raise EtcdError(FAILED_PRECONDITION, f"{name} is not restarted: it leads, and no other voter can")
    return next_leader
