"""Who is there: the member list joined with pods, answers and evidence of loss. A member is told by its peer URL."""

from __future__ import annotations

from dataclasses import dataclass

from ..api.cluster import Cluster
from ..etcd.types import Member
from ..etcd.versions import parse
from .config import file_name
from .loss import loss, loss_of_claim
from .observation import Answer, Claim, Observed, Pod


@dataclass(frozen=True)
class Seat:
    """One ordinal of the StatefulSet, and the member there if there is one."""

    ordinal: int
    name: str  # the pod's, and the member's once it has started
    member: Member | None
    pod: Pod | None
    claim: Claim | None
    answer: Answer | None
    lost: str  # why it will not come back, in words; "" while it may
    leads: bool = False

    @property
    def healthy(self) -> bool:
        return self.answer is not None and self.answer.healthy

    @property
    def serves(self) -> bool:
        """One whose pod is being deleted does so for a moment only: it is not counted upon."""
        return self.healthy and not (self.pod and self.pod.deleting)

    @property
    def answers(self) -> bool:
        return self.answer is not None and self.answer.status is not None

    @property
    def version(self) -> str:
        return self.answer.status.version if self.answer and self.answer.status else ""

    @property
    def applied(self) -> int:
        """How far it is in the log."""
        return self.answer.status.raft_applied_index if self.answer and self.answer.status else 0

    @property
    def trouble(self) -> str:
        """Why it does not serve, as far as anybody knows."""
        if self.lost or self.pod is None:
            return self.lost or "it has no pod"
        return self.pod.problem or (self.answer.error if self.answer else "")

    @property
    def id(self) -> str:
        return f"{self.member.id:x}" if self.member else ""


@dataclass(frozen=True)
class Team:
    """The members as a quorum lists them."""

    seats: tuple[Seat, ...]  # by ordinal; also those where a pod is and no member
    strangers: tuple[Member, ...]  # members that are none of ours

    @property
    def voters(self) -> list[Seat]:
        return [seat for seat in self.seats if seat.member and not seat.member.is_learner]

    @property
    def learners(self) -> list[Seat]:
        return [seat for seat in self.seats if seat.member and seat.member.is_learner]

    @property
    def crowded(self) -> bool:
        """etcd allows one learner at a time, whoever added it."""
        return bool(self.learners) or any(member.is_learner for member in self.strangers)

    @property
    def votes(self) -> int:
        """How many voters there are, strangers too."""
        return len(self.voters) + sum(not member.is_learner for member in self.strangers)

    @property
    def unwell(self) -> list[str]:
        """Voters that do not serve. Of strangers nothing is known, so they are not counted upon."""
        ours = [seat.name for seat in self.voters if not seat.serves]
        return ours + [stranger_name(member) for member in self.strangers if not member.is_learner]

    @property
    def versions(self) -> list[str]:
        """What the voters run that answer."""
        return [seat.version for seat in self.voters if seat.version]

    @property
    def cluster_version(self) -> str:
        """What the members agree on, as the slowest of them knows it."""
        told = [seat.answer.cluster_version for seat in self.voters if seat.answer and seat.answer.cluster_version]
        return min(told, default="", key=parse)

    @property
    def downgrade(self) -> str:
        """The version that a downgrade which is enabled goes to."""
        told = (seat.answer.status.downgrade for seat in self.voters if seat.answer and seat.answer.status)
        return next(filter(None, told), "")

    @property
    def ordinals(self) -> list[int]:
        """Where members are."""
        return [seat.ordinal for seat in self.seats if seat.member]


def gather(cluster: Cluster, seen: Observed) -> Team | None:
    """Who is there; None when no quorum tells."""
    if seen.members is None:
        return None
    placed = [(ordinal(cluster, member), member) for member in seen.members.members]
    ours = {number: member for number, member in placed if number is not None}
    pods = {number for pod in seen.pods if (number := cluster.ordinal(pod.name)) is not None}
    well = {name for name, answer in seen.answers.items() if answer.healthy}
    settings = {pod.template_hash for pod in seen.pods if pod.name in well}
    # Somebody who is slow may know a leader of old: the newest term counts.
    leader = max(((a.status.raft_term, a.status.leader_id) for a in seen.answers.values() if a.status), default=(0, 0))
    files = seen.objects.get(f"ConfigMap/{cluster.config_map}", {}).get("data", {})
    seats = []
    for number in sorted(pods | set(ours)):
        name = cluster.pod_name(number)
        pod, claim, member = seen.pod(name), seen.claim(name), ours.get(number)
        # Without its file nobody can start, and with the same settings others do.
        proven = pod is not None and pod.template_hash in settings and file_name(name) in files
        lost = loss_of_claim(pod, claim) if name in well else loss(pod, claim, others_well=proven)
        leads = member is not None and member.id == leader[1]
        seats.append(Seat(number, name, member, pod, claim, _own(seen.answers.get(name), member), lost, leads))
    return Team(tuple(seats), tuple(member for number, member in placed if number is None))


def _own(answer: Answer | None, member: Member | None) -> Answer | None:
    """What a member said itself; its predecessor in the same pod may still answer for a moment."""
    if answer and answer.status and member and answer.status.member_id != member.id:
        return Answer(None, healthy=False, error="its predecessor still runs")
    return answer


def ordinal(cluster: Cluster, member: Member) -> int | None:
    """Which of our pods a member is; None for a stranger."""
    for url in member.peer_urls:
        number = cluster.ordinal(url.removeprefix(f"{cluster.scheme}://").partition(".")[0])
        if number is not None and url == cluster.peer_url(cluster.pod_name(number)):
            return number
    return None


def stranger_name(member: Member) -> str:
    return f"{member.name or 'a member that has not started'} ({member.id:x}, {', '.join(member.peer_urls)})"
