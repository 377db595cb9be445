"""The order of a rolling restart, and whether a voter may restart now. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .membership import quorum

# Entries that a member may be behind and still count as in sync: etcd keeps that many for slow followers.
_BEHIND = 5000


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


def _is_behind(voters: Sequence[Voter], voter: Voter) -> bool:
    return max(other.applied for other in voters) - voter.applied > _BEHIND
