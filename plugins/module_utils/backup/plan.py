"""The phases, reasons and actions of an EtcdBackup, and what is observed of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..api.cluster import Cluster
from ..kube import jobs
from ..kube.manifest import Manifest
from ..plan import WARNING, Action, Ref
from ..plan import Phase as BasePhase
from ..plan import Reason as BaseReason


class Phase(BasePhase):
    PENDING = "Pending", "It has not started; the message says what it waits for."
    RUNNING = "Running", "A Job takes the snapshot and verifies it, or removes what a failed one left."
    SUCCEEDED = "Succeeded", "The snapshot is at its destination and verified."
    FAILED = "Failed", "There is no snapshot; the message says why. It is not tried again."
    DELETING = "Deleting", "The EtcdBackup is being deleted."


class Reason(BaseReason):
    WAITING_FOR_JOB = "WaitingForJob", "A Job of an earlier EtcdBackup of this name is still ending.", "Wait."
    WAITING_FOR_OBJECTS = (
        "WaitingForObjects",
        "A Secret or PVC named in the spec does not exist.",
        "Create it within two minutes.",
    )
    FOREIGN_OBJECT = (
        "ForeignObject",
        "An object has a name that this EtcdBackup needs, and was not made for it. It is not changed.",
        "Delete the object that the message names, within two minutes if the backup has not started yet.",
        WARNING,
    )
    WAITING_FOR_CLUSTER = "WaitingForCluster", "No member of the EtcdCluster is healthy.", "See the EtcdCluster."
    STARTED = "Started", "The Job that takes the snapshot is created.", ""
    RUNNING = "Running", "The snapshot is taken and verified.", "Wait; the message has the Job's problem, if any."
    SUCCEEDED = "Succeeded", "The snapshot is at its destination and was verified by etcdutl.", ""
    FAILED = (
        "Failed",
        "No snapshot was taken. What it left was removed.",
        "See the message, then create another EtcdBackup.",
        WARNING,
    )
    CLEANING_UP = "CleaningUp", "The backup failed, and what it left is removed.", ""
    DELETING = "Deleting", "The EtcdBackup is being deleted, with its data if spec.deletion.storage is Delete.", ""
    DELETED = "Deleted", "Nothing is left to do.", ""
    CANNOT_DELETE = (
        "CannotDelete",
        "The data can't be deleted. It is tried again.",
        "Correct the cause, or set the annotation etcdops.dev/skip-cleanup=true to keep the data.",
        WARNING,
    )
    LEFT_BEHIND = (
        "LeftBehind",
        "The namespace is being deleted, so no Job can delete the data.",
        "Delete the data by hand.",
    )
    GONE = "Gone", "The EtcdBackup does not exist any more.", ""


@dataclass(frozen=True)
class StartJob(Action):
    """Create a Job, and a PVC of its own if it needs one. Each is created once."""

    objects: tuple[Manifest, ...]

    @property
    def creates(self) -> tuple[Manifest, ...]:
        return self.objects


@dataclass(frozen=True)
class CleanUp(Action):
    """Delete Jobs that have reported, and the PVC of this snapshot alone."""

    jobs: tuple[Ref, ...] = ()
    claims: tuple[Ref, ...] = ()


@dataclass(frozen=True)
class Observation:
    now: datetime
    image: str = ""  # the operator's own
    cluster: Cluster | None = None
    cluster_status: dict[str, Any] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)  # of the members' pods
    images: dict[str, str] = field(default_factory=dict)  # of the members' pods
    refused_image: str = ""  # why the image of the spec may not be used
    claim_uid: str | None = None  # the EtcdBackup that its own PVC was made for; None when there is no such PVC
    claim: Ref | None = None  # that PVC
    foreign: frozenset[str] = frozenset()  # objects that have a name it needs, as "Kind name"
    shared: bool = False  # another EtcdBackup is kept on that PVC too
    job: jobs.Job | None = None
    check_log: str | None = None  # what etcdutl printed; None when the log is not available now
    cleanup: jobs.Job | None = None
    missing: str = ""  # objects without which a Job's pod would wait for ever
