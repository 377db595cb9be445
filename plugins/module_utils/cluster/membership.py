"""The members as a quorum lists them, joined with pods, PVCs and evidence of loss, by their peer URLs."""

from __future__ import annotations

from dataclasses import dataclass

from ..api.cluster import Cluster
from ..etcd.types import Member
from ..etcd.view import MemberView
from .loss import loss, loss_of_claim
from .member_config import file_name
from .observation import Claim, Observation, Pod


@dataclass(frozen=True)
class MemberSlot:
    """One ordinal of the StatefulSet, and the member there if there is one."""

    ordinal: int
    name: str  # of the pod, and of the member once it has started
    view: MemberView | None
    pod: Pod | None
    claim: Claim | None
    lost: str  # why the member is permanently lost; "" while it may come back
    leads: bool = False

    @property
    def member(self) -> Member | None:
        return self.view.member if self.view else None

    @property
    def id(self) -> str:
        return f"{self.view.member.id:x}" if self.view else ""

    @property
    def healthy(self) -> bool:
        return self.view is not None and bool(self.view.healthy)

    @property
    def dependable(self) -> bool:
        """Healthy, and its pod is not being deleted."""
        return self.healthy and not (self.pod and self.pod.deleting)

    @property
    def answers(self) -> bool:
        return self.view is not None and self.view.status is not None

    @property
    def version(self) -> str:
        return self.view.version if self.view else ""

    @property
    def applied(self) -> int:
        return self.view.applied if self.view else 0

    @property
    def problem(self) -> str:
        """Why it is not healthy, as far as is known."""
        if self.lost or self.pod is None:
            return self.lost or "it has no pod"
        return self.pod.problem or (self.view.error if self.view else "")


@dataclass(frozen=True)
class Membership:
    slots: tuple[MemberSlot, ...]  # by ordinal; also those with a pod and no member
    unmanaged: tuple[Member, ...]  # members that this EtcdCluster did not add
    cluster_version: str = ""  # as the slowest voter knows it
    downgrade: str = ""  # the version that a pending downgrade goes to

    @property
    def voters(self) -> list[MemberSlot]:
        return [slot for slot in self.slots if slot.view and slot.view.voter]

    @property
    def learners(self) -> list[MemberSlot]:
        return [slot for slot in self.slots if slot.view and not slot.view.voter]

    @property
    def has_learner(self) -> bool:
        """etcd allows one learner at a time, whoever added it."""
        return bool(self.learners) or any(member.is_learner for member in self.unmanaged)

    @property
    def unmanaged_voters(self) -> list[Member]:
        return [member for member in self.unmanaged if not member.is_learner]

    @property
    def votes(self) -> int:
        """How many voters there are, unmanaged ones too."""
        return len(self.voters) + len(self.unmanaged_voters)

    @property
    def undependable(self) -> list[str]:
        """Voters that are not healthy or about to stop. Nothing is known of unmanaged ones, so they are among them."""
        return [slot.name for slot in self.voters if not slot.dependable] + list(map(display, self.unmanaged_voters))

    @property
    def versions(self) -> list[str]:
        """The versions that the voters run which answer."""
        return [slot.version for slot in self.voters if slot.version]

    @property
    def ordinals(self) -> list[int]:
        """The slots that have a member."""
        return [slot.ordinal for slot in self.slots if slot.view]


def membership_of(cluster: Cluster, observed: Observation) -> Membership | None:
    """Join the member list with what was observed; None when no quorum reports a list."""
    view = observed.view
    if not view.quorum:
        return None
    placed = [(ordinal_of(cluster, one.member), one) for one in view.members]
    managed = {number: one for number, one in placed if number is not None}
    pods = {number for pod in observed.pods if (number := cluster.ordinal(pod.name)) is not None}
    slots = tuple(_slot(cluster, observed, number, managed.get(number)) for number in sorted(pods | set(managed)))
    unmanaged = tuple(one.member for number, one in placed if number is None)
    return Membership(slots, unmanaged, view.cluster_version, view.downgrade)


def _slot(cluster: Cluster, observed: Observation, number: int, one: MemberView | None) -> MemberSlot:
    name = cluster.pod_name(number)
    pod, claim = observed.pod(name), observed.claim(name)
    answer = observed.view.answer(cluster.client_url(name))
    if answer is not None and answer.healthy:
        lost = loss_of_claim(pod, claim)
    else:
        lost = loss(pod, claim, others_healthy=_is_proven(cluster, observed, pod))
    leads = one is not None and one.member.id == observed.view.leader_id
    return MemberSlot(number, name, one, pod, claim, lost, leads)


def _is_proven(cluster: Cluster, observed: Observation, pod: Pod | None) -> bool:
    """Whether another member is healthy with the same settings, so that the settings are not what makes one crash."""
    if pod is None:
        return False
    healthy = {
        other.template_hash
        for other in observed.pods
        if (answer := observed.view.answer(cluster.client_url(other.name))) and answer.healthy
    }
    files = observed.objects.get(f"ConfigMap/{cluster.config_map}", {}).get("data", {})
    return pod.template_hash in healthy and file_name(pod.name) in files


def ordinal_of(cluster: Cluster, member: Member) -> int | None:
    """The ordinal of the pod that a member runs in; None for an unmanaged member."""
    for url in member.peer_urls:
        number = cluster.ordinal(url.removeprefix(f"{cluster.scheme}://").partition(".")[0])
        if number is not None and url == cluster.peer_url(cluster.pod_name(number)):
            return number
    return None


def display(member: Member) -> str:
    """An unmanaged member, for messages."""
    return f"{member.name or 'a member that has not started'} ({member.id:x}, {', '.join(member.peer_urls)})"
