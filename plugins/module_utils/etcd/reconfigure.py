"""Making one change of membership, or of leadership: the requests to etcd, and what a refusal means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .client import Client
from .errors import UNAVAILABLE, EtcdError
from .fanout import on_any
from .membership import Change, Wanted, applied, decide, display_name
from .types import Member
from .view import Connection, Seen, Survey


@dataclass(frozen=True)
class Done:
    """What was changed, or would be; None when all was as wanted already."""

    change: Change | None
    before: tuple[Member, ...]
    after: tuple[Member, ...]
    warning: str = ""


def bring_about(connection: Connection, found: Survey, wanted: Wanted, *, dry_run: bool = False) -> Done:
    """Have it as wanted. EtcdError for what can't be done, or would cost the cluster its quorum."""
    if not found.quorum:
        ill = "; ".join(f"{display_name(seen.member)}: {seen.error}" for seen in found.members if not seen.healthy)
        message = f"the cluster has no quorum, so its members can't be changed; bring its voters back first ({ill})"
        raise EtcdError(UNAVAILABLE, message)
    before = tuple(seen.member for seen in found.members)
    change = decide(wanted, before, found.healthy)
    if change is None or dry_run:
        return Done(change, before, applied(change, before))
    warning = ""
    if change.action == "remove" and change.member.id == found.leader_id and (heir := best_heir(found)):
        # A leader that is removed leaves a cluster without one for an election's time; better hand over before.
        try:
            hand_over(connection, found, heir.member)
        except EtcdError as error:
            warning = f"leadership could not be moved to {heir.member.name} before the removal: {error}"
    return Done(change, before, _make(change, wanted, before, _voters(connection, found, change)), warning)


def best_heir(found: Survey) -> Seen | None:
    """The healthy voter, other than the leader, that knows most."""
    heirs = [seen for seen in found.members if seen.healthy and not seen.member.is_learner]
    heirs = [seen for seen in heirs if seen.member.id != found.leader_id]
    return max(heirs, key=lambda seen: seen.status.raft_applied_index if seen.status else 0, default=None)


def hand_over(connection: Connection, found: Survey, heir: Member) -> None:
    """Have another voter lead. Only the leader takes this request, and the list has it first."""
    on_any([connection.client(url) for url in found.voter_urls], lambda client: client.move_leader(heir.id))


def _voters(connection: Connection, found: Survey, change: Change) -> list[Client]:
    """Whom to ask: not the one that is to go, if there is another."""
    going = {seen.url for seen in found.members if change.action == "remove" and seen.member == change.member}
    staying = [url for url in found.voter_urls if url not in going]
    return [connection.client(url) for url in staying or found.voter_urls]


def _make(change: Change, wanted: Wanted, before: Sequence[Member], voters: Sequence[Client]) -> tuple[Member, ...]:
    """Make the change and return the members there are then."""
    try:
        return on_any(voters, lambda client: _request(client, change, before))
    except EtcdError as error:
        # The answer to a request may be lost and the change be made all the same: the list tells.
        after = _reread(voters)
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


def _reread(voters: Sequence[Client]) -> tuple[Member, ...] | None:
    try:
        return on_any(voters, lambda client: client.members()).members
    except EtcdError:
        return None


def _explained(error: EtcdError, change: Change) -> EtcdError:
    if error.not_in_sync:
        name = display_name(change.member)
        return EtcdError(error.code, f"the learner {name} is not in sync with the leader yet; promote it again later")
    if error.message == "etcdserver: unhealthy cluster":
        hint = "a voter is down, or came less than 5 seconds ago: try again then"
        return EtcdError(error.code, f"every voter that was asked refuses to {change.action}: {error}; {hint}")
    return error


def downgrade(connection: Connection, found: Survey, version: str, *, dry_run: bool = False) -> bool:
    """Have etcd get ready for an older minor version such as 3.5, or call it off (""); tells whether that was news."""
    enabled = next((seen.status.downgrade for seen in found.members if seen.status and seen.status.downgrade), "")
    if enabled.startswith(f"{version}.") if version else not enabled:
        return False
    if not dry_run:
        voters = [connection.client(url) for url in found.voter_urls]
        if version:
            on_any(voters, lambda client: client.downgrade("ENABLE", f"{version}.0"))
        else:
            on_any(voters, lambda client: client.downgrade("CANCEL", ""))
    return True
