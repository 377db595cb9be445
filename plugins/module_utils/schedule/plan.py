"""The phases, reasons and actions of an EtcdBackupSchedule, and what is observed of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..kube.manifest import Manifest
from ..plan import QUIET, WARNING, Action, Ref
from ..plan import Phase as BasePhase
from ..plan import Reason as BaseReason


class Phase(BasePhase):
    ACTIVE = "Active", "Runs start when they are due."
    SUSPENDED = "Suspended", "No run starts while spec.suspend is true; retention is still applied."
    INVALID = "Invalid", "spec.schedule or spec.timeZone can't be used; the message says why."


class Reason(BaseReason):
    WAITING = "Waiting", "The next run is not due yet.", "", QUIET
    STARTING_RUN = "StartingRun", "A run is due, and its EtcdBackup is created.", ""
    RUN_STARTED = "RunStarted", "The EtcdBackup of a run was created.", "", QUIET
    RUN_SKIPPED = (
        "RunSkipped",
        "A run was due while the one before was not finished, and spec.concurrencyPolicy is Forbid.",
        "Run less often, or set spec.concurrencyPolicy.",
        WARNING,
    )
    FOREIGN_OBJECT = (
        "ForeignObject",
        "An EtcdBackup that this schedule did not create has the name that a due run needs.",
        "Delete that EtcdBackup; otherwise the run is skipped when the next one is due.",
        WARNING,
    )
    PRUNING = "Pruning", "EtcdBackups that spec.retention does not keep are deleted.", ""
    SUSPENDED = "Suspended", "spec.suspend is true.", "Set spec.suspend to false."
    INVALID = (
        "Invalid",
        "spec.schedule or spec.timeZone can't be parsed.",
        "Correct it; the message shows an example.",
        WARNING,
    )
    NEVER_DUE = "NeverDue", "No date matches spec.schedule.", "Correct spec.schedule.", WARNING
    GONE = "Gone", "The EtcdBackupSchedule is being deleted or does not exist any more.", "", QUIET


@dataclass(frozen=True)
class StartBackup(Action):
    """Create the EtcdBackup of a run, after deleting the runs that it replaces."""

    backup: Manifest
    replaced: tuple[Ref, ...] = ()


@dataclass(frozen=True)
class PruneBackups(Action):
    """Delete EtcdBackups, and their data with them."""

    backups: tuple[Ref, ...]


@dataclass(frozen=True)
class Made:
    """An EtcdBackup that this schedule created."""

    name: str
    due: datetime
    phase: str
    completed: str = ""
    deleting: bool = False
    message: str = ""
    uid: str = ""

    @property
    def done(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True)
class Observation:
    now: datetime
    backups: tuple[Made, ...] = ()
    foreign: bool = False  # another EtcdBackup has the name of the one of the run that is due
