"""One view of an etcd cluster: members, health, versions, alarms, sizes and the leader, as all members answer at once.

A member that does not answer is part of the view. The operator, its acting modules and the public modules share it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .client import Client
from .connection import Connection
from .endpoint import Endpoint
from .errors import INVALID_ARGUMENT, UNAVAILABLE, EtcdError
from .types import Alarm, Member, MemberList, Status
from .versions import parse

# An alarm in a member's status: "memberID:8359351909157550159 alarm:NOSPACE ". ID 0 is left out; 3.7 has other spaces.
_ALARM = re.compile(r"(?:memberID:(\d+)\s+)?alarm:(\w+)")


class NoAnswer(EtcdError):  # noqa: N818  as Unreachable
    """No voter answers."""

    def __init__(self, answers: Mapping[str, Answer | EtcdError]) -> None:
        reasons = [
            str(one) if isinstance(one, EtcdError) else f"{url}: it is a learner" for url, one in answers.items()
        ]
        super().__init__(UNAVAILABLE, f"no voter of the cluster answers: {'; '.join(reasons)}")


@dataclass(frozen=True)
class Answer:
    """What one endpoint answered."""

    status: Status
    error: str = ""  # why the member is not healthy
    members: MemberList | None = None  # a learner does not report it
    agreed: bool = False  # a quorum confirmed `members`; otherwise it is the member's own view
    cluster_version: str = ""  # the version that the members agreed on, as this member knows it
    needs_auth: bool = False  # auth is enabled and permits no reading, so it permits no changes either

    @property
    def healthy(self) -> bool:
        """It served a linearizable read; a learner: it follows a leader."""
        return not self.error


@dataclass(frozen=True)
class MemberView:
    """A member of the member list. `healthy` is None and `url` empty when it was not asked."""

    member: Member
    url: str = ""
    status: Status | None = None
    healthy: bool | None = None
    error: str = ""
    alarms: tuple[str, ...] = ()
    cluster_version: str = ""

    @property
    def voter(self) -> bool:
        return not self.member.is_learner

    @property
    def version(self) -> str:
        """The etcd version that it runs; "" when it does not answer."""
        return self.status.version if self.status else ""

    @property
    def applied(self) -> int:
        """The last raft index that it applied."""
        return self.status.raft_applied_index if self.status else 0


@dataclass(frozen=True)
class ClusterView:
    cluster_id: int = 0
    quorum: bool = False  # a quorum confirmed the member list; otherwise it is the view of the most advanced member
    leader_id: int = 0  # 0 when there is none
    members: tuple[MemberView, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    answers: Mapping[str, Answer | EtcdError] = field(default_factory=dict)  # by URL

    @property
    def voters(self) -> list[MemberView]:
        return [member for member in self.members if member.voter]

    @property
    def learners(self) -> list[MemberView]:
        return [member for member in self.members if not member.voter]

    @property
    def leader(self) -> MemberView | None:
        return next((member for member in self.members if member.member.id == self.leader_id), None)

    @property
    def healthy(self) -> frozenset[int]:
        """The IDs of the healthy members."""
        return frozenset(member.member.id for member in self.members if member.healthy)

    @property
    def voter_urls(self) -> list[str]:
        """Where requests can be sent: healthy voters, the leader first."""
        voters = [member for member in self.voters if member.healthy]
        return [member.url for member in sorted(voters, key=lambda one: one.member.id != self.leader_id)]

    @property
    def cluster_version(self) -> str:
        """The version that the members agreed on, as the slowest voter knows it."""
        return min((one.cluster_version for one in self.voters if one.cluster_version), default="", key=parse)

    @property
    def downgrade(self) -> str:
        """The version that a pending downgrade goes to; "" for none."""
        return next((one.status.downgrade for one in self.voters if one.status and one.status.downgrade), "")

    @property
    def needs_auth(self) -> bool:
        """Whether auth is enabled and refuses requests over this connection."""
        return any(answer.needs_auth for answer in self.answers.values())

    def find(self, member_id: int) -> MemberView | None:
        return next((one for one in self.members if one.member.id == member_id), None)

    def answer(self, url: str) -> Answer | None:
        """What an endpoint answered; None when it was not asked or refused."""
        found = self.answers.get(url)
        return found if isinstance(found, Answer) else None

    @property
    def answered(self) -> bool:
        """Whether any endpoint answered, whatever it said."""
        return any(isinstance(answer, Answer) for answer in self.answers.values())

    def require_members(self) -> ClusterView:
        """This view, if any voter answered; EtcdError otherwise."""
        if self.members:
            return self
        for answer in self.answers.values():
            if isinstance(answer, EtcdError) and answer.final:  # a wrong password is not silence
                raise answer
        raise NoAnswer(self.answers)

    def require_leader(self) -> ClusterView:
        """This view, if the cluster has quorum and a leader; EtcdError otherwise."""
        if not self.quorum or not self.leader_id:
            raise EtcdError(UNAVAILABLE, "the cluster has no leader; bring its voters back first")
        return self

    def without(self, stopping: Collection[str]) -> ClusterView:
        """The same view, but members of these names are not counted on: their pods are being deleted."""
        members = (
            replace(one, healthy=False, error="its pod is being deleted") if one.member.name in stopping else one
            for one in self.members
        )
        return replace(self, members=tuple(members))


def look(
    connection: Connection,
    urls: Sequence[str],
    *,
    discover: bool = True,
    cluster_id: int | None = None,
    deadline: float = 0,
) -> ClusterView:
    """Ask every endpoint and, with `discover`, the members that they report too.

    With `cluster_id`, an endpoint of another cluster counts as one that refuses; without, endpoints of several clusters
    are an EtcdError. `deadline` is for all answers, by default three times the connection's timeout.
    """
    seconds = deadline or 3 * connection.timeout
    answers = connection.ask_all(list(dict.fromkeys(urls)), _question, seconds)
    listed = _best_list(answers)
    # A learner accepts no login, but it accepts the token that a voter issued in the meantime.
    more = [url for url, answer in answers.items() if isinstance(answer, EtcdError) and answer.from_learner]
    if discover and listed is not None:
        more += _undiscovered(listed, answers, secure_only=all(Endpoint(url).secure for url in urls))
    if more:
        answers |= connection.ask_all(more, _question, seconds)
    return build(_of_cluster(answers, cluster_id))


def _question(client: Client) -> Answer:
    status = client.status()
    if status.is_learner:  # it serves no linearizable read
        return Answer(status, "" if status.leader_id else "it knows no leader")
    try:
        members = client.members()
    except EtcdError as error:
        return Answer(status, error.message, client.members(linearizable=False))
    try:
        permitted = client.health()
    except EtcdError as error:
        return Answer(status, error.message, members, agreed=True)
    return Answer(status, "", members, True, client.cluster_version(), needs_auth=not permitted)


def build(answers: Mapping[str, Answer | EtcdError]) -> ClusterView:
    """Join answers into a view."""
    replies = {url: answer for url, answer in answers.items() if isinstance(answer, Answer)}
    listed = _best_list(answers)
    if listed is None:
        return ClusterView(answers=answers)
    alarms = _alarms(replies.values())
    by_id = {answer.status.member_id: url for url, answer in replies.items()}
    # A minority may still follow an earlier leader: a quorum's word and then the newest term count.
    *_, leader_id = max((one.agreed, one.status.raft_term, one.status.leader_id) for one in replies.values())
    return ClusterView(
        cluster_id=listed.cluster_id,
        quorum=any(answer.agreed for answer in replies.values()),
        leader_id=leader_id,
        members=tuple(_member_view(member, by_id.get(member.id), answers, alarms) for member in listed.members),
        alarms=alarms,
        answers=answers,
    )


def _of_cluster(answers: dict[str, Answer | EtcdError], cluster_id: int | None) -> dict[str, Answer | EtcdError]:
    """The answers, checked to be of one cluster."""
    if cluster_id is not None:
        return {url: _checked(url, answer, cluster_id) for url, answer in answers.items()}
    clusters: dict[int, str] = {}
    for url, answer in answers.items():
        if isinstance(answer, Answer):
            clusters.setdefault(answer.status.cluster_id, url)
    if len(clusters) > 1:
        which = ", ".join(f"{url} of {number:x}" for number, url in clusters.items())
        raise EtcdError(INVALID_ARGUMENT, f"the endpoints are not of one cluster: {which}; name those of one only")
    return answers


def _checked(url: str, answer: Answer | EtcdError, cluster_id: int) -> Answer | EtcdError:
    if isinstance(answer, EtcdError) or answer.status.cluster_id == cluster_id:
        return answer
    return EtcdError(UNAVAILABLE, f"it belongs to another cluster, {answer.status.cluster_id:x}", url)


def _best_list(answers: Mapping[str, Answer | EtcdError]) -> MemberList | None:
    """The member list that a quorum confirmed, otherwise that of the most advanced member."""
    lists = [one for one in answers.values() if isinstance(one, Answer) and one.members is not None]
    best = max(lists, key=lambda one: (one.agreed, one.status.raft_applied_index), default=None)
    return best.members if best else None


def _undiscovered(listed: MemberList, answers: Mapping[str, Answer | EtcdError], *, secure_only: bool) -> list[str]:
    """A URL of each member that has not answered yet. Who uses TLS is not led to plain text."""
    answered = {answer.status.member_id for answer in answers.values() if isinstance(answer, Answer)}
    missing = [member for member in listed.members if member.id not in answered]
    usable = [[url for url in member.client_urls if _usable(url, secure_only)] for member in missing]
    return [urls[0] for urls in usable if urls and not set(urls) & set(answers)]


def _usable(url: str, secure_only: bool) -> bool:
    try:
        return Endpoint(url).secure or not secure_only
    except EtcdError:  # a unix socket, for example
        return False


def _member_view(
    member: Member, url: str | None, answers: Mapping[str, Answer | EtcdError], alarms: Sequence[Alarm]
) -> MemberView:
    own_alarms = tuple(alarm.alarm for alarm in alarms if alarm.member_id == member.id)
    answer = answers[url] if url else None
    if url and isinstance(answer, Answer):
        return MemberView(member, url, answer.status, answer.healthy, answer.error, own_alarms, answer.cluster_version)
    if not member.name:
        return MemberView(member, healthy=False, error="it has not started yet", alarms=own_alarms)
    for asked in member.client_urls:
        if asked in answers:
            refused = answers[asked]
            error = str(refused) if isinstance(refused, EtcdError) else f"{asked}: another member answers there"
            return MemberView(member, asked, None, False, error, own_alarms)
    return MemberView(member, error="it was not asked", alarms=own_alarms)


def _alarms(answers: Iterable[Answer]) -> tuple[Alarm, ...]:
    """All alarms: every member reports those of the whole cluster in its status.

    To ask for them would need quorum and cost a log entry.
    """
    found = (_ALARM.search(error) for answer in answers for error in answer.status.errors)
    return tuple(sorted({Alarm(int(one[1] or 0), one[2]) for one in found if one}))
