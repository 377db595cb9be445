"""What is there: a picture of one cluster at one moment, as plain facts. A member that doesn't answer is a fact too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from .etcd import MemberList, Status
from .kube import Manifest


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


@dataclass(frozen=True)
class Claim:
    name: str
    cluster_uid: str  # the EtcdCluster that it was made for


@dataclass(frozen=True)
class Answer:
    """What a member said of itself when asked over its client port."""

    status: Status | None
    healthy: bool  # it served a linearizable read
    error: str = ""


@dataclass(frozen=True)
class Certificates:
    missing: tuple[str, ...] = ()
    due: tuple[str, ...] = ()  # to be renewed before they expire
    problem: str = ""  # why the user's own Secrets can't be used


@dataclass(frozen=True)
class Observed:
    now: datetime
    cluster_id: str | None  # in the status since the first quorum was seen
    objects: Mapping[str, Manifest] = field(default_factory=dict)  # by "Kind/name"; no Secrets
    pods: tuple[Pod, ...] = ()
    claims: tuple[Claim, ...] = ()
    answers: Mapping[str, Answer] = field(default_factory=dict)  # by pod
    members: MemberList | None = None  # as a quorum sees it
    certificates: Certificates = Certificates()
    storage_class_missing: bool = False

    def pod(self, name: str) -> Pod | None:
        return next((pod for pod in self.pods if pod.name == name), None)
