"""Which change of membership is needed, and whether it would cost the cluster its quorum. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from .errors import FAILED_PRECONDITION, INVALID_ARGUMENT, EtcdError
from .types import Member


@dataclass(frozen=True)
class Wanted:
    """The desired state of one member, identified by `id`, `name` or `peer_urls`; all that are given must match."""

    state: str  # present, absent, promoted
    id: int | None = None
    name: str | None = None
    peer_urls: tuple[str, ...] = ()
    learner: bool = True
    force: bool = False


@dataclass(frozen=True)
class Change:
    """One request to etcd. `member` is the member before the change; one that is added has the ID 0."""

    action: str  # add, update, promote, remove
    member: Member
    peer_urls: tuple[str, ...] = ()


def quorum(voters: int) -> int:
    return voters // 2 + 1


def member_id(text: str | None) -> int | None:
    """Parse an ID as etcdctl prints it."""
    try:
        return int(text, 16) if text else None
    except ValueError:
        message = f"id is {text!r}; it must be hexadecimal, as `etcdctl member list` writes it"
        raise EtcdError(INVALID_ARGUMENT, message) from None


def find(wanted: Wanted, members: Sequence[Member]) -> Member | None:
    """The member that `wanted` identifies. EtcdError when it matches several, or contradicts itself."""
    by_id = [member for member in members if member.id == wanted.id]
    by_name = [member for member in members if wanted.name and member.name == wanted.name]
    by_urls = [member for member in members if set(member.peer_urls) & set(wanted.peer_urls)]
    if wanted.id is not None:
        chosen = by_id
    elif by_name:
        chosen = by_name
    else:
        chosen = by_urls
    if len(chosen) > 1:
        which = ", ".join(f"{member.id:x}" for member in chosen)
        raise EtcdError(INVALID_ARGUMENT, f"several members match ({which}); use an id")
    found = chosen[0] if chosen else None
    if found is not None and wanted.name and found.name not in (wanted.name, ""):
        raise EtcdError(
            INVALID_ARGUMENT,
            f"{display_name(found)} matches the id or peer_urls, but not the name {wanted.name}",
        )
    for other in by_urls:
        if other != found:
            urls = ", ".join(sorted(set(other.peer_urls) & set(wanted.peer_urls)))
            raise EtcdError(INVALID_ARGUMENT, f"{urls} is a peer URL of another member, {display_name(other)}")
    return found


def decide(wanted: Wanted, members: Sequence[Member], healthy: Collection[int]) -> Change | None:
    """The change to make; None when none is needed. EtcdError for what is impossible or unsafe."""
    found = find(wanted, members)
    change = {"present": _present, "absent": _absent, "promoted": _promoted}[wanted.state](wanted, found)
    if change is not None and not wanted.force:
        _keep_quorum(change, members, healthy)
    return change


def applied(change: Change | None, members: Sequence[Member]) -> tuple[Member, ...]:
    """The members after a change."""
    if change is None:
        return tuple(members)
    if change.action == "add":
        return (*members, change.member)
    others = tuple(member for member in members if member.id != change.member.id)
    if change.action == "remove":
        return others
    if change.action == "promote":
        return (*others, replace(change.member, is_learner=False))
    return (*others, replace(change.member, peer_urls=change.peer_urls))


def _present(wanted: Wanted, found: Member | None) -> Change | None:
    if found is None:
        if wanted.id is not None:
            message = f"no member has the id {wanted.id:x}, and etcd gives IDs itself; leave id out to add a member"
            raise EtcdError(INVALID_ARGUMENT, message)
        if not wanted.peer_urls:
            raise EtcdError(INVALID_ARGUMENT, f"there is no member {wanted.name}; give peer_urls to add it")
        return Change("add", Member(0, "", wanted.peer_urls, (), wanted.learner))
    if wanted.peer_urls and set(wanted.peer_urls) != set(found.peer_urls):
        return Change("update", found, wanted.peer_urls)
    return None


def _absent(wanted: Wanted, found: Member | None) -> Change | None:
    if found is None:
        return None
    if wanted.peer_urls and not set(wanted.peer_urls) & set(found.peer_urls):
        theirs = ", ".join(found.peer_urls)
        raise EtcdError(
            INVALID_ARGUMENT, f"{display_name(found)} has other peer URLs ({theirs}); is it the one to remove?"
        )
    return Change("remove", found)


def _promoted(wanted: Wanted, found: Member | None) -> Change | None:
    if found is None:
        meant = wanted.name or ", ".join(wanted.peer_urls) or f"{wanted.id:x}"
        raise EtcdError(INVALID_ARGUMENT, f"there is no member {meant} to promote; add it with state=present first")
    return Change("promote", found) if found.is_learner else None


def _keep_quorum(change: Change, members: Sequence[Member], healthy: Collection[int]) -> None:
    """Refuse a change after which fewer voters than a quorum would be healthy."""
    before = [member for member in members if not member.is_learner]
    after = [member for member in applied(change, members) if not member.is_learner]
    if {member.id for member in after} == {member.id for member in before}:
        return
    well = [member for member in after if member.id in healthy]
    if after and len(well) >= quorum(len(after)):
        return
    name = display_name(change.member)
    ill = ", ".join(
        display_name(member) for member in after if member.id not in healthy and member is not change.member
    )
    match change.action:
        case "remove" if not after:
            doing, advice = f"removing {name}", "it is the only voter; to end the cluster, stop it"
        case "remove":
            doing, advice = f"removing {name}", f"bring back or remove unhealthy members first: {ill}"
        case "add":
            doing = "adding a voter, which counts before it has started,"
            advice = "add it with learner=true and promote it once it has caught up"
        case _:
            doing = f"promoting {name}"
            advice = f"check that it runs and that the other voters are healthy (unhealthy: {ill or 'none'})"
    raise EtcdError(
        FAILED_PRECONDITION,
        f"{doing} would leave {len(well)} healthy of {len(after)} voters where {quorum(len(after))} are needed, and "
        f"the cluster would lose quorum; {advice}. force=true skips this check, though not etcd's own.",
    )


def display_name(member: Member) -> str:
    """The name of a member for messages; one that has not started yet has none."""
    return member.name or f"{member.id:x} ({', '.join(member.peer_urls)})"
