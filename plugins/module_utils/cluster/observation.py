"""What was observed of one EtcdCluster at one moment, as plain facts. A member that does not answer is a fact too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from ..etcd.view import ClusterView
from ..kube.manifest import Manifest
from ..plan import Ref
from .memory import Memory


class NodeState(StrEnum):
    """State of the node that a pod is bound to."""

    READY = "ready"
    UNREACHABLE = "unreachable"  # Kubernetes has not heard from it for a while
    GONE = "gone"  # there is no such node any more
    UNKNOWN = "unknown"  # none yet, not looked at, or no permission to look


@dataclass(frozen=True)
class Pod:
    name: str
    uid: str
    address: str | None
    ready: bool
    deleting: bool
    created: datetime
    template_hash: str
    problem: str  # why it does not run, in the words of the scheduler or the kubelet; "" when it does
    version: str = ""  # of etcd, by its annotation or the tag of its image; "" when neither tells
    overdue: bool = False  # it is being deleted and should be gone by now
    scheduled: bool = True
    node: NodeState = NodeState.UNKNOWN  # only looked at when its member is not healthy
    started: bool = False  # etcd runs, or has run in it
    crashed: bool = False  # etcd has ended, and was not started again yet
    restarts: int = 0  # in a row: 0 when it had run for a while before it ended
    log_tail: str = ""  # the end of etcd's log when it ended last
    out_of_memory: bool = False  # and that is why it ended
    resource_version: str = ""

    @property
    def ref(self) -> Ref:
        """This pod in this state: one that has started or voted since is another."""
        return Ref(self.name, self.uid, self.resource_version)


@dataclass(frozen=True)
class Claim:
    """A PVC with a member's data."""

    name: str
    cluster_uid: str  # the EtcdCluster that it was made for
    uid: str = ""
    deleting: bool = False
    stranded: bool = False  # its volume can only be used on nodes that do not exist any more, as far as is known
    requested: str = ""
    capacity: str = ""


@dataclass(frozen=True)
class Foreign:
    """An object that has a name which the cluster needs, and belongs to something else."""

    kind: str
    name: str
    left_over: bool = False  # of an earlier EtcdCluster of this name: Kubernetes deletes it

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Certificates:
    missing: tuple[str, ...] = ()
    due: tuple[str, ...] = ()  # to be renewed before they expire
    problem: str = ""  # why the user's own Secrets can't be used
    shared: tuple[str, ...] = ()  # whose CAs this cluster shares, from an earlier version of the operator


@dataclass(frozen=True)
class Observation:
    now: datetime
    memory: Memory = field(default_factory=Memory)
    operator: str = ""  # the name of this operator, among all that there may be
    objects: Mapping[str, Manifest] = field(default_factory=dict)  # its own, by "Kind/name"; no Secrets
    foreign: tuple[Foreign, ...] = ()
    pods: tuple[Pod, ...] = ()
    claims: tuple[Claim, ...] = ()
    view: ClusterView = field(default_factory=ClusterView)
    certificates: Certificates = Certificates()
    storage_class_missing: bool = False
    unexpandable: tuple[str, ...] = ()  # StorageClasses of PVCs that should grow but can't, as far as is known
    allowed_repositories: tuple[str, ...] = ()  # a setting of the operator; none: any

    def pod(self, name: str) -> Pod | None:
        return next((pod for pod in self.pods if pod.name == name), None)

    def foreign_name(self, kind: str, name: str) -> bool:
        """Whether a foreign object has this name."""
        return any((each.kind, each.name) == (kind, name) for each in self.foreign)

    def claim(self, pod: str) -> Claim | None:
        """The PVC with the data of a pod."""
        return next((claim for claim in self.claims if claim.name == f"data-{pod}"), None)
