"""What is there: a picture of one cluster at one moment, as plain facts. A member that doesn't answer is a fact too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from ..etcd.types import MemberList, Status
from ..kube.manifest import Manifest


class Node(StrEnum):
    """How the node is that a pod, or its disk, is tied to."""

    WELL = "well"
    UNREACHABLE = "unreachable"  # Kubernetes has not heard from it for a while
    GONE = "gone"  # there is no such node any more
    UNKNOWN = "unknown"  # none yet, or we may not look


@dataclass(frozen=True)
class Pod:
    name: str
    uid: str
    address: str | None
    ready: bool
    deleting: bool
    created: datetime
    template_hash: str
    problem: str  # why it does not run, in words; "" when it does
    version: str = ""  # of etcd, as its image says; "" when that says nothing
    overdue: bool = False  # it should have been gone by now
    scheduled: bool = True
    node: Node = Node.UNKNOWN  # only looked at when its member does not answer
    ran: bool = False  # etcd runs, or has run in it
    crashed: bool = False  # etcd has ended, and has not been started again yet
    restarts: int = 0  # in a row: 0 when it had run for a while before it ended
    last_words: str = ""  # the end of etcd's log when it ended last
    out_of_memory: bool = False  # and that is why it ended


@dataclass(frozen=True)
class Claim:
    name: str
    cluster_uid: str  # the EtcdCluster that it was made for
    deleting: bool = False
    node: Node = Node.UNKNOWN  # only looked at when its pod can't be scheduled
    wanted: str = ""  # the size that it asks for
    size: str = ""  # the size that it has


@dataclass(frozen=True)
class Answer:
    """What a member said of itself when asked over its client port."""

    status: Status | None
    healthy: bool  # it served a linearizable read; of a learner, it follows a leader
    error: str = ""
    cluster_version: str = ""  # the version that the members agree on, as this one knows it


@dataclass(frozen=True)
class Certificates:
    missing: tuple[str, ...] = ()
    due: tuple[str, ...] = ()  # to be renewed before they expire
    problem: str = ""  # why the user's own Secrets can't be used


@dataclass(frozen=True)
class Join:
    """A learner that is on its way, or was taken back; noted in the status, which alone remembers times."""

    member: str  # its ID, in hexadecimal
    since: datetime
    failed: bool = False
    generation: int = 0  # of the spec, when it was taken back


@dataclass(frozen=True)
class Upgrade:
    """From one version to another, as the status remembers it."""

    source: str
    to: str
    started: datetime
    snapshot: str = ""  # the EtcdBackup from before; "" for none
    log_ready: bool = False  # the members' logs have nothing in them that the version can't read
    completed: datetime | None = None


@dataclass(frozen=True)
class Observed:
    now: datetime
    cluster_id: str | None  # in the status since the first quorum was seen
    phase: str = ""  # what the status said before
    unwell_since: datetime | None = None  # likewise: since when the cluster is degraded or not available
    degraded_since: datetime | None = None  # likewise: since when it is degraded, whether clients can write or not
    join: Join | None = None  # likewise
    upgrade: Upgrade | None = None  # likewise
    objects: Mapping[str, Manifest] = field(default_factory=dict)  # by "Kind/name"; no Secrets
    pods: tuple[Pod, ...] = ()
    claims: tuple[Claim, ...] = ()
    answers: Mapping[str, Answer] = field(default_factory=dict)  # by pod
    members: MemberList | None = None  # as a quorum sees it
    certificates: Certificates = Certificates()
    storage_class_missing: bool = False
    unexpandable: tuple[str, ...] = ()  # StorageClasses of claims that are to grow, and can't as far as is known

    def pod(self, name: str) -> Pod | None:
        return next((pod for pod in self.pods if pod.name == name), None)

    def claim(self, pod: str) -> Claim | None:
        """The claim with the data of a pod."""
        return next((claim for claim in self.claims if claim.name == f"data-{pod}"), None)
