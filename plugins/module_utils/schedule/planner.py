"""What to do next for an EtcdBackupSchedule: a pure function, as planner.py is for an EtcdCluster.

A run is known by the time it was due, and its EtcdBackup is named after that. So a run that was begun before a crash
is not begun again, and one that fell into the time when no operator was there is made up for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from typing import Any

from ..api.backup import DUE, SCHEDULE_LABEL, SCHEDULE_UID, manifest
from ..api.schedule import Schedule, ScheduleError, runs_after
from ..kube.conditions import conditions, time_text
from ..kube.manifest import Manifest
from .retention import Kept, to_delete

SETTLED = 300


class Phase(StrEnum):
    ACTIVE = "Active"
    SUSPENDED = "Suspended"
    INVALID = "Invalid"


class Step(StrEnum):
    """Each has a file in roles/etcdbackupschedule/tasks/steps/."""

    IDLE = "idle"
    RUN = "run"  # begin a backup
    PRUNE = "prune"  # delete those that are not to be kept


@dataclass(frozen=True)
class Made:
    """An EtcdBackup that this schedule has made."""

    name: str
    due: datetime
    phase: str
    completed: str = ""
    deleting: bool = False
    message: str = ""

    @property
    def done(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True)
class Observed:
    now: datetime
    backups: tuple[Made, ...] = ()


@dataclass(frozen=True)
class Plan:
    phase: Phase
    reason: str
    message: str
    step: Step = Step.IDLE
    create: tuple[Manifest, ...] = ()
    delete: tuple[str, ...] = ()  # EtcdBackups
    result: Mapping[str, Any] = field(default_factory=dict)
    requeue: int = SETTLED

    @property
    def warning(self) -> bool:
        return self.phase is Phase.INVALID or self.reason == "PassedOver"


def plan(schedule: Schedule, seen: Observed, before: dict[str, Any]) -> Plan:
    """The next step; `before` is the status so far."""
    noted = datetime.fromisoformat(before["lastScheduleTime"]) if "lastScheduleTime" in before else schedule.created
    since = max(noted, seen.now - schedule.deadline - schedule.jitter)  # what was due before can't begin any more
    try:
        due = list(takewhile(lambda run: run <= seen.now, runs_after(schedule, since)))
        following = next(runs_after(schedule, max(seen.now, since)))
    except ScheduleError as error:
        return Plan(Phase.INVALID, "Invalid", f"{error}.", result={"nextRunTime": None})
    except StopIteration:
        return Plan(
            Phase.INVALID, "NeverDue", f"schedule {schedule.cron!r} is never due.", result={"nextRunTime": None}
        )
    if schedule.suspend:
        passed = {"lastScheduleTime": time_text(due[-1])} if due else {}
        message = "Suspended; runs that are due meanwhile are not made up for."
        result = {**passed, "nextRunTime": None}
        suspended = Plan(Phase.SUSPENDED, "Suspended", message, result=result, requeue=_settling(seen))
        return _prune(schedule, seen, suspended)
    ready = [run for run in due if run + schedule.delay(run) <= seen.now]
    begins = min(run + schedule.delay(run) for run in (*due, following) if run not in ready)
    return _run(schedule, seen, ready, begins) if ready else _wait(schedule, seen, begins)


def _run(schedule: Schedule, seen: Observed, ready: list[datetime], begins: datetime) -> Plan:
    """A run is due: the latest one; earlier ones that were missed are past."""
    run, made = ready[-1], {each.name for each in seen.backups}
    missed = sum(schedule.tick(earlier) not in made for earlier in ready[:-1])
    noted = {"lastScheduleTime": time_text(run), "nextRunTime": time_text(begins)}
    active = [each for each in seen.backups if not each.done and not each.deleting and each.due != run]
    skipped = f" {missed} earlier runs were missed." if missed else ""
    if active and schedule.concurrency == "Forbid":
        message = f"The run of {time_text(run)} is passed over: {active[0].name} is not done.{skipped}"
        return Plan(Phase.ACTIVE, "PassedOver", message, result=noted, requeue=1)
    replaced = tuple(each.name for each in active) if schedule.concurrency == "Replace" else ()
    noted |= {"lastBackup": schedule.tick(run)}
    message = f"Beginning {schedule.tick(run)}.{skipped}"
    # The status comes first in a reconcile. Were the run noted before it was begun, a crash in between would lose it.
    unnoted = {key: value for key, value in noted.items() if key != "lastScheduleTime"}
    if schedule.tick(run) in made:
        return Plan(Phase.ACTIVE, "Began", f"Began {schedule.tick(run)}.{skipped}", result=noted, requeue=1)
    return Plan(Phase.ACTIVE, "Beginning", message, Step.RUN, (_backup(schedule, run),), replaced, unnoted, requeue=1)


def _backup(schedule: Schedule, run: datetime) -> Manifest:
    # Deleting a schedule deletes no backup. But what it deletes itself goes with its data.
    spec = {**dict(schedule.template), "deletion": {"storage": "Delete"}}
    return manifest(
        schedule.namespace,
        schedule.tick(run),
        f"EtcdBackupSchedule/{schedule.name}",
        spec,
        labels={SCHEDULE_LABEL: schedule.name, SCHEDULE_UID: schedule.uid},
        annotations={DUE: time_text(run)},
    )


def _wait(schedule: Schedule, seen: Observed, begins: datetime) -> Plan:
    left = max(1, int((begins - seen.now).total_seconds()) + 1)
    requeue = min(left, _settling(seen))
    message = f"The next run begins at {time_text(begins)}."
    waiting = Plan(Phase.ACTIVE, "Waiting", message, result={"nextRunTime": time_text(begins)}, requeue=requeue)
    return _prune(schedule, seen, waiting)


def _settling(seen: Observed) -> int:
    """When to look again: when a run ends, another may have to go."""
    return 5 if any(not each.done for each in seen.backups) else SETTLED


def _prune(schedule: Schedule, seen: Observed, otherwise: Plan) -> Plan:
    kept = [
        Kept(each.name, each.due, each.phase == "Succeeded", each.done) for each in seen.backups if not each.deleting
    ]
    names = to_delete(kept, schedule.retention)
    if not names:
        return otherwise
    message = f"{', '.join(names)} are not to be kept any longer."
    return Plan(
        otherwise.phase, "Pruning", message, Step.PRUNE, delete=tuple(names), result=otherwise.result, requeue=1
    )


def status(schedule: Schedule, seen: Observed, done: Plan, before: dict[str, Any]) -> dict[str, Any]:
    """The whole status."""
    ended = sorted((each for each in seen.backups if each.done and not each.deleting), key=lambda each: each.due)
    good = [each for each in ended if each.phase == "Succeeded"]
    well = bool(ended) and ended[-1].phase == "Succeeded"
    told = f"{ended[-1].name} {ended[-1].phase.lower()}: {ended[-1].message}" if ended else "No run has ended yet."
    said = (
        ("Active", str(done.phase is Phase.ACTIVE), done.reason, done.message),
        ("BackedUp", str(well) if ended else "Unknown", "LastRun" if ended else "NoRun", told),
    )
    return {
        "phase": str(done.phase),
        "message": f"{told} {done.message}" if ended and not well else done.message,
        "observedGeneration": schedule.generation,
        "kept": len(good),
        "lastSuccessfulTime": good[-1].completed if good else before.get("lastSuccessfulTime"),
        **done.result,
        "conditions": conditions(said, schedule.generation, before.get("conditions", []), seen.now),
    }
