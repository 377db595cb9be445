"""What is seen and what is planned for an EtcdRestore, as plan.py and observed.py are for an EtcdCluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from ..api.cluster import HELD_BY, Cluster
from ..api.restore import Restore, Snapshot
from ..backup import jobs
from ..kube.conditions import conditions
from ..kube.manifest import Manifest

SOON, SETTLED = 1, 3600


class Phase(StrEnum):
    PENDING = "Pending"
    VERIFYING = "Verifying"
    SNAPSHOTTING = "Snapshotting"
    STOPPING = "Stopping"
    RESTORING = "Restoring"
    STARTING = "Starting"
    PUTTING_BACK = "PuttingBack"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


BEFORE = (Phase.PENDING, Phase.VERIFYING, Phase.SNAPSHOTTING)  # anything is touched
FINISHED = (Phase.SUCCEEDED, Phase.FAILED)


class Step(StrEnum):
    """Each has a file in roles/etcdrestore/tasks/steps/."""

    IDLE = "idle"
    FETCH = "fetch"  # the Job that fetches and hands out the snapshot, and certificates for that
    CREATE = "create"  # objects that are made once
    HOLD = "hold"  # mark the EtcdCluster: its members stop, or don't start
    RELEASE = "release"  # let it start
    TIDY = "tidy"  # remove what is done with


@dataclass(frozen=True)
class Observed:
    now: datetime
    image: str = ""  # the operator's own
    snapshot: Snapshot | None = None
    problem: str = ""  # why there is no snapshot to restore
    resource: Manifest | None = None  # the EtcdCluster
    cluster: Cluster | None = None  # the same, or what would be made
    refusal: str = ""  # why Kubernetes would not take the new EtcdCluster
    stopped: bool = True  # no member runs, and nobody is about to start one
    claims: Mapping[str, str] = field(default_factory=dict)  # name: the uid of the EtcdCluster that it was made for
    source: jobs.Job | None = None
    check_log: str | None = None
    jobs: Mapping[str, jobs.Job] = field(default_factory=dict)  # by name, of members
    backup: dict[str, Any] | None = None  # the status of the EtcdBackup of what was there

    @property
    def annotations(self) -> dict[str, str]:
        found: dict[str, str] = (self.resource or {}).get("metadata", {}).get("annotations") or {}
        return found

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = (self.resource or {}).get("status", {})
        return found

    def held_by(self, restore: Restore) -> bool:
        """Has the EtcdCluster been told that no member may run?"""
        return self.annotations.get(HELD_BY) == restore.name

    def at_rest(self, restore: Restore) -> bool:
        """And has it heard, so that the volumes are nobody's but ours?"""
        return self.held_by(restore) and self.status.get("phase") == "Restoring" and self.stopped


@dataclass(frozen=True)
class Plan:
    phase: Phase
    reason: str
    message: str
    step: Step = Step.IDLE
    create: tuple[Manifest, ...] = ()
    annotations: dict[str, str | None] = field(default_factory=dict)
    forget_id: bool = False  # the EtcdCluster's clusterID: it gets another
    delete_jobs: tuple[str, ...] = ()
    result: dict[str, Any] = field(default_factory=dict)  # goes into the status
    requeue: int = SOON
    release: bool = False  # the finalizer's work is done

    @property
    def warning(self) -> bool:
        return self.phase in (Phase.FAILED, Phase.PUTTING_BACK)


def status(restore: Restore, done: Plan, before: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The whole status."""
    said = (
        ("Complete", str(done.phase is Phase.SUCCEEDED), done.reason, done.message),
        ("Failed", str(done.phase is Phase.FAILED), done.reason, done.message),
    )
    return {
        "phase": str(done.phase),
        "message": done.message,
        "observedGeneration": restore.generation,
        "cluster": restore.cluster,
        **done.result,
        "conditions": conditions(said, restore.generation, before.get("conditions", []), now),
    }
