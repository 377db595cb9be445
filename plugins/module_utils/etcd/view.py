"""What a cluster looks like when all its members are asked at once. Who doesn't answer is part of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .client import Client
from .endpoint import Endpoint, Tls
from .errors import INVALID_ARGUMENT, UNAVAILABLE, EtcdError
from .fanout import ask_all, on_any
from .types import Alarm, Member, MemberList, Status


class NoAnswer(EtcdError):  # noqa: N818  as Unreachable
    """No voter answers; `found` tells what became of each URL."""

    def __init__(self, found: dict[str, Look | EtcdError]) -> None:
        reasons = [str(one) if isinstance(one, EtcdError) else f"{url}: it is a learner" for url, one in found.items()]
        super().__init__(UNAVAILABLE, f"no voter of the cluster answers: {'; '.join(reasons)}")
        self.found = found


@dataclass
class Connection:
    """How to talk with a cluster; one client per URL, closed all together."""

    tls: Tls | None = None
    timeout: float = 5.0
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    endpoints: dict[str, Endpoint] = field(default_factory=dict)  # by URL; for those that DNS may not know
    _clients: dict[str, Client] = field(default_factory=dict, repr=False)

    def client(self, url: str) -> Client:
        if url not in self._clients:
            endpoint = self.endpoints.get(url) or Endpoint(url)
            self._clients[url] = Client(endpoint, self.tls, self.timeout, self.user, self.password)
        client = self._clients[url]
        client.token = client.token or next((other.token for other in self._clients.values() if other.token), None)
        return client

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


@dataclass(frozen=True)
class Look:
    """What one endpoint said."""

    status: Status
    error: str = ""  # why it is not healthy
    members: MemberList | None = None  # a learner doesn't tell
    agreed: bool = False  # a quorum says so; else `members` is the member's own view

    @property
    def healthy(self) -> bool:
        return not self.error


@dataclass(frozen=True)
class Seen:
    """A member of the list. `healthy` is None and `url` empty when it was not asked."""

    member: Member
    url: str = ""
    status: Status | None = None
    healthy: bool | None = None
    error: str = ""
    alarms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Survey:
    cluster_id: int
    quorum: bool  # the list is what a quorum agrees on; else the view of the member that knows most
    leader_id: int  # 0 when there is none
    members: tuple[Seen, ...]
    alarms: tuple[Alarm, ...]
    endpoints: dict[str, Look | EtcdError]  # by URL

    @property
    def healthy(self) -> frozenset[int]:
        """The IDs of the members that are well."""
        return frozenset(seen.member.id for seen in self.members if seen.healthy)

    @property
    def voter_urls(self) -> list[str]:
        """Where requests can be put: healthy voters, the leader first."""
        voters = [seen for seen in self.members if seen.healthy and not seen.member.is_learner]
        return [seen.url for seen in sorted(voters, key=lambda seen: seen.member.id != self.leader_id)]


def survey(connection: Connection, urls: Sequence[str], *, discover: bool = True) -> Survey:
    """Ask every endpoint and, with `discover`, the members that they tell of too.

    EtcdError when none of them answers, or when they are not of one cluster.
    """
    found = _ask(connection, list(dict.fromkeys(urls)))
    listed = _best_list(found)
    more = [url for url, answer in found.items() if isinstance(answer, EtcdError) and answer.from_learner]
    if discover and listed is not None:
        more += _undiscovered(listed, found, secure_only=all(Endpoint(url).secure for url in urls))
    found |= _ask(connection, more)
    return _picture(connection, found)


def _ask(connection: Connection, urls: Sequence[str]) -> dict[str, Look | EtcdError]:
    clients = [connection.client(url) for url in urls]
    return dict(zip(urls, ask_all(clients, _look, deadline=3 * connection.timeout), strict=True))


def _look(client: Client) -> Look:
    status = client.status()
    if status.is_learner:  # it serves no linearizable read; that it follows a leader must do
        return Look(status, "" if status.leader_id else "it knows no leader")
    try:
        members = client.members()
    except EtcdError as error:
        return Look(status, error.message, client.members(linearizable=False))
    try:
        client.health()
    except EtcdError as error:
        return Look(status, error.message, members, agreed=True)
    return Look(status, "", members, agreed=True)


def _best_list(found: dict[str, Look | EtcdError]) -> MemberList | None:
    """A quorum's view if there is one, else that of the member that knows most."""
    looks = [look for look in found.values() if isinstance(look, Look) and look.members is not None]
    best = max(looks, key=lambda look: (look.agreed, look.status.raft_applied_index), default=None)
    return best.members if best else None


def _undiscovered(listed: MemberList, found: dict[str, Look | EtcdError], *, secure_only: bool) -> list[str]:
    """A URL of each member that has not answered yet. Who uses TLS is not led to plain text."""
    answered = {look.status.member_id for look in found.values() if isinstance(look, Look)}
    missing = [member for member in listed.members if member.id not in answered]
    usable = [[url for url in member.client_urls if _usable(url, secure_only)] for member in missing]
    return [urls[0] for urls in usable if urls and not set(urls) & set(found)]


def _usable(url: str, secure_only: bool) -> bool:
    try:
        return Endpoint(url).secure or not secure_only
    except EtcdError:  # a unix socket, for example
        return False


def _picture(connection: Connection, found: dict[str, Look | EtcdError]) -> Survey:
    looks = {url: look for url, look in found.items() if isinstance(look, Look)}
    listed = _best_list(found)
    if listed is None:
        raise _nobody(found)
    _of_one_cluster(looks)
    by_id = {look.status.member_id: url for url, look in looks.items()}
    alarms = _alarms(connection, looks)
    # A minority may still follow a leader of old, and during an election views differ: the newest term counts.
    *_, leader_id = max((look.agreed, look.status.raft_term, look.status.leader_id) for look in looks.values())
    return Survey(
        cluster_id=listed.cluster_id,
        quorum=any(look.agreed for look in looks.values()),
        leader_id=leader_id,
        members=tuple(_seen(member, by_id.get(member.id), found, alarms) for member in listed.members),
        alarms=alarms,
        endpoints=found,
    )


def _nobody(found: dict[str, Look | EtcdError]) -> EtcdError:
    for answer in found.values():
        if isinstance(answer, EtcdError) and answer.final:  # a wrong password is not silence
            return answer
    return NoAnswer(found)


def _of_one_cluster(looks: dict[str, Look]) -> None:
    clusters: dict[int, str] = {}
    for url, look in looks.items():
        clusters.setdefault(look.status.cluster_id, url)
    if len(clusters) > 1:
        which = ", ".join(f"{url} of {cluster_id:x}" for cluster_id, url in clusters.items())
        raise EtcdError(INVALID_ARGUMENT, f"the endpoints are not of one cluster: {which}; name those of one only")


def _seen(member: Member, url: str | None, found: dict[str, Look | EtcdError], alarms: Sequence[Alarm]) -> Seen:
    own_alarms = tuple(alarm.alarm for alarm in alarms if alarm.member_id == member.id)
    look = found[url] if url else None
    if url and isinstance(look, Look):
        return Seen(member, url, look.status, look.healthy, look.error, own_alarms)
    if not member.name:
        return Seen(member, healthy=False, error="it has not started yet", alarms=own_alarms)
    for asked in member.client_urls:
        if asked in found:
            answer = found[asked]
            error = str(answer) if isinstance(answer, EtcdError) else f"{asked}: another member answers there"
            return Seen(member, asked, None, False, error, own_alarms)
    return Seen(member, error="it was not asked", alarms=own_alarms)


def _alarms(connection: Connection, looks: dict[str, Look]) -> tuple[Alarm, ...]:
    """Asked for only when a member speaks of one: the question itself goes through raft."""
    if not any("alarm:" in error for look in looks.values() for error in look.status.errors):
        return ()
    voters = [connection.client(url) for url, look in looks.items() if look.members is not None]
    try:
        return on_any(voters, lambda client: client.alarms())
    except EtcdError:  # without quorum; what the members say themselves is in their status
        return ()
