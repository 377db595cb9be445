"""Making one change of membership: the requests to etcd, and what a refusal means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .client import Client
from .connection import Connection
from .errors import UNAVAILABLE, EtcdError
from .leadership import move_leader, successor
from .membership import Change, Wanted, applied, decide, display_name
from .restart_order import voters
from .types import Member
from .view import ClusterView


@dataclass(frozen=True)
class Outcome:
    """What was changed, or would be in a dry run; `change` is None when the membership was as wanted already."""

    change: Change | None
    before: tuple[Member, ...]
    after: tuple[Member, ...]
    warning: str = ""


def reconfigure(connection: Connection, view: ClusterView, wanted: Wanted, *, dry_run: bool = False) -> Outcome:
    """Bring the membership to what is wanted. EtcdError for what is impossible or would cost the quorum."""
    if not view.quorum:
        unhealthy = "; ".join(f"{display_name(one.member)}: {one.error}" for one in view.members if not one.healthy)
        message = (
            f"the cluster has no quorum, so its members can't be changed; bring its voters back first ({unhealthy})"
        )
        raise EtcdError(UNAVAILABLE, message)
    before = tuple(one.member for one in view.members)
    change = decide(wanted, before, view.healthy)
    if change is None or dry_run:
        return Outcome(change, before, applied(change, before))
    warning = ""
    if change.action == "remove" and change.member.id == view.leader_id:
        # Removing the leader leaves the cluster without one until the next election: move leadership first.
        warning = _move_leadership(connection, view)
    return Outcome(change, before, _make(connection, _accepting(view, change), change, wanted, before), warning)


def _move_leadership(connection: Connection, view: ClusterView) -> str:
    """Move it to the best successor; the warning when that fails."""
    transferee = successor(voters(view), view.leader_id)
    if transferee is None:
        return ""
    try:
        move_leader(connection, view, transferee.id)
    except EtcdError as error:
        return f"leadership could not be moved to {transferee.name} before the removal: {error}"
    return ""


def _accepting(view: ClusterView, change: Change) -> list[str]:
    """Where to send the request: not to the member that is removed, if there is another."""
    removed = {one.url for one in view.members if change.action == "remove" and one.member == change.member}
    return [url for url in view.voter_urls if url not in removed] or view.voter_urls


def _make(
    connection: Connection, urls: Sequence[str], change: Change, wanted: Wanted, before: Sequence[Member]
) -> tuple[Member, ...]:
    """Make the change and return the members after it."""
    try:
        return connection.on_any(urls, lambda client: _request(client, change, before))
    except EtcdError as error:
        # The answer may be lost although the change was made: the member list tells.
        after = _reread(connection, urls)
        if after is not None and decide(replace(wanted, force=True), after, ()) is None:
            return after
        raise _explained(error, change) from error


def _request(client: Client, change: Change, before: Sequence[Member]) -> tuple[Member, ...]:
    match change.action:
        case "add":
            return (*before, client.member_add(change.member.peer_urls, change.member.is_learner))
        case "update":
            return client.member_update(change.member.id, change.peer_urls).members
        case "promote":
            return client.member_promote(change.member.id).members
        case _:
            return client.member_remove(change.member.id).members


def _reread(connection: Connection, urls: Sequence[str]) -> tuple[Member, ...] | None:
    try:
        return connection.on_any(urls, lambda client: client.members()).members
    except EtcdError:
        return None


def _explained(error: EtcdError, change: Change) -> EtcdError:
    if error.not_in_sync:
        name = display_name(change.member)
        return EtcdError(error.code, f"the learner {name} is not in sync with the leader yet; promote it again later")
    if error.message == "etcdserver: unhealthy cluster":
        hint = "a voter is down, or was connected less than 5 seconds ago: try again then"
        return EtcdError(error.code, f"every voter that was asked refuses to {change.action}: {error}; {hint}")
    return error
