"""Who should lead next, and moving leadership there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from .connection import Connection
from .view import ClusterView

# Entries that a member may be behind and still count as in sync: etcd keeps that many for slow followers.
_IN_SYNC = 5000


class Candidate(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def healthy(self) -> bool: ...
    @property
    def applied(self) -> int: ...
    @property
    def updated(self) -> bool: ...


C = TypeVar("C", bound=Candidate)


def successor(voters: Sequence[C], leader_id: int) -> C | None:
    """The healthy voter in sync that should lead next: an updated one, then the most advanced; None for none."""
    others = [voter for voter in voters if voter.healthy and voter.id != leader_id and in_sync(voters, voter)]
    return max(others, key=lambda voter: (voter.updated, voter.applied), default=None)


def in_sync(voters: Sequence[C], voter: C) -> bool:
    """Near enough to the most advanced voter that another one may restart."""
    return max(other.applied for other in voters) - voter.applied <= _IN_SYNC


def move_leader(connection: Connection, view: ClusterView, transferee: int) -> None:
    """Have another voter lead. Only the leader accepts this request, and the list has it first."""
    connection.on_any(view.voter_urls, lambda client: client.move_leader(transferee))
