"""The phases, reasons and actions of an EtcdRestore, and what is observed of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..api.cluster import HELD_BY, Cluster
from ..api.restore import Restore, Snapshot
from ..kube import jobs
from ..kube.manifest import Manifest
from ..plan import WARNING, Action, Ref
from ..plan import Phase as BasePhase
from ..plan import Reason as BaseReason


class Phase(BasePhase):
    PENDING = "Pending", "It has not started; the message says what it waits for."
    VERIFYING = "Verifying", "The snapshot is fetched and verified. Nothing is changed yet."
    SNAPSHOTTING = "Snapshotting", "In place: a snapshot of the current data is taken."
    STOPPING = "Stopping", "In place: every member is stopped."
    RESTORING = "Restoring", "Each member's data is made from the snapshot."
    STARTING = "Starting", "All data is in place, and the members start."
    PUTTING_BACK = (
        "PuttingBack",
        "The restore failed. The previous data is put back, or the new EtcdCluster is removed.",
    )
    SUCCEEDED = "Succeeded", "The EtcdCluster runs with the data of the snapshot."
    FAILED = "Failed", "The message says why, and what the EtcdCluster has now. It is not tried again."

    @property
    def untouched(self) -> bool:
        """Nothing of the EtcdCluster was changed yet."""
        return self in (Phase.PENDING, Phase.VERIFYING, Phase.SNAPSHOTTING)

    @property
    def finished(self) -> bool:
        return self in (Phase.SUCCEEDED, Phase.FAILED)


class Reason(BaseReason):
    WAITING_FOR_BACKUP = "WaitingForBackup", "The EtcdBackup of the source is not finished.", "See the EtcdBackup."
    FOREIGN_OBJECT = (
        "ForeignObject",
        "An object has a name that this EtcdRestore needs, and was not made for it. It is not changed.",
        "Delete the object that the message names, or delete this EtcdRestore.",
        WARNING,
    )
    VERIFYING = "Verifying", "The snapshot is fetched and verified. Nothing is changed yet.", "Wait."
    SNAPSHOTTING = "Snapshotting", "A snapshot of the current data is taken first.", "See the EtcdBackup."
    CREATING = "Creating", "The snapshot is verified, and the new EtcdCluster is created.", ""
    STOPPING = "Stopping", "Every member of the EtcdCluster is stopped.", "Wait."
    RESTORING = (
        "Restoring",
        "Each member's data is made from the snapshot.",
        "Wait; the message has a Job's problem, if any.",
    )
    STARTING = "Starting", "All data is in place, and the members start.", "Wait."
    PUTTING_BACK = (
        "PuttingBack",
        "The restore failed. The previous data is put back, or the new EtcdCluster is removed.",
        "Wait.",
        WARNING,
    )
    SUCCEEDED = "Succeeded", "The EtcdCluster runs with the data of the snapshot.", ""
    FAILED = (
        "Failed",
        "The restore failed; the message says why and what the EtcdCluster has now.",
        "Create another EtcdRestore.",
        WARNING,
    )
    GONE = "Gone", "The EtcdRestore or its namespace is being deleted.", ""


@dataclass(frozen=True)
class FetchSnapshot(Action):
    """Create the Job that fetches, verifies and hands out the snapshot, and the certificates for that."""

    objects: tuple[Manifest, ...]

    @property
    def creates(self) -> tuple[Manifest, ...]:
        return self.objects


@dataclass(frozen=True)
class CreateObjects(Action):
    """Create PVCs and Jobs of members, an EtcdCluster or an EtcdBackup. Each is created once."""

    objects: tuple[Manifest, ...]

    @property
    def creates(self) -> tuple[Manifest, ...]:
        return self.objects


@dataclass(frozen=True)
class HoldCluster(Action):
    """Annotate the EtcdCluster: its members stop, or, when the restore failed, may run again.

    Only one EtcdRestore can hold it: what was decided on another resourceVersion is refused.
    """

    cluster: str
    resource_version: str
    annotations: dict[str, str | None]


@dataclass(frozen=True)
class ReleaseCluster(Action):
    """Let the EtcdCluster start with the data of the snapshot, under a new cluster ID."""

    cluster: str
    resource_version: str
    annotations: dict[str, str | None]


@dataclass(frozen=True)
class RemoveCluster(Action):
    """Delete the EtcdCluster that a failed restore created, after its PVCs: it never started and has no data."""

    cluster: Ref
    claims: tuple[Ref, ...]


@dataclass(frozen=True)
class DeleteJobs(Action):
    """Delete Jobs that have reported."""

    jobs: tuple[Ref, ...]


@dataclass(frozen=True)
class Claim:
    """The PVC of a member."""

    uid: str
    cluster_uid: str  # of the EtcdCluster that it was made for
    deleting: bool = False


@dataclass(frozen=True)
class Observation:
    now: datetime
    image: str = ""  # the operator's own
    snapshot: Snapshot | None = None
    problem: str = ""  # why there is no snapshot to restore
    pending: str = ""  # the phase of the EtcdBackup of the source, if it is not finished
    resource: Manifest | None = None  # the EtcdCluster
    cluster: Cluster | None = None  # the same, or the one that would be created
    refusal: str = ""  # why Kubernetes would refuse the new EtcdCluster
    refused_image: str = ""  # why the image of the EtcdCluster may not be used
    rival: str = ""  # another EtcdRestore that restores the same EtcdCluster and comes first
    stopped: bool = True  # no member runs, and none is about to start
    claims: Mapping[str, Claim] = field(default_factory=dict)  # of the EtcdCluster or with its names, by name
    foreign: frozenset[str] = frozenset()  # objects that have a name it needs, as "Kind name"; no PVCs
    source: jobs.Job | None = None
    check_log: str | None = None
    jobs: Mapping[str, jobs.Job] = field(default_factory=dict)  # by name, of members
    backup: dict[str, Any] | None = None  # the status of the EtcdBackup of the previous data, if there is one

    @property
    def annotations(self) -> dict[str, str]:
        found: dict[str, str] = (self.resource or {}).get("metadata", {}).get("annotations") or {}
        return found

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = (self.resource or {}).get("status", {})
        return found

    @property
    def resource_version(self) -> str:
        return str((self.resource or {}).get("metadata", {}).get("resourceVersion", ""))

    @property
    def holder(self) -> str:
        """The EtcdRestore that holds the EtcdCluster, so that no member may run; "" for none."""
        return self.annotations.get(HELD_BY, "")

    def is_own_claim(self, name: str) -> bool:
        """Whether a PVC was made for the EtcdCluster as it is."""
        found = self.claims.get(name)
        return found is not None and self.cluster is not None and found.cluster_uid == self.cluster.uid

    def held_by(self, restore: Restore) -> bool:
        return self.holder == restore.name

    def at_rest(self, restore: Restore) -> bool:
        """Whether its members have stopped, so that only this restore uses the volumes."""
        # One that was never reconciled has no phase, and its first reconcile sees the hold.
        return self.held_by(restore) and self.status.get("phase") in (None, "Restoring") and self.stopped
