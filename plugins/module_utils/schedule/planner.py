"""What to do next for an EtcdBackupSchedule. Pure, as cluster/planner.py.

A run is known by the time it was due, and its EtcdBackup is named after that. So a run that was started before a crash
is not started again, and one that was due while no operator ran is caught up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any

from ..api.backup import DUE, SCHEDULE_LABEL, SCHEDULE_UID, manifest
from ..api.schedule import Schedule, ScheduleError, runs_after
from ..kube.conditions import conditions, time_text
from ..kube.events import Event
from ..kube.manifest import Manifest
from ..plan import SETTLED, WATCHFUL, Plan, Ref, transition
from .plan import Made, Observation, Phase, PruneBackups, Reason, StartBackup
from .retention import Kept, to_delete

_AT_ONCE = 10  # unfinished runs of one schedule, with concurrencyPolicy Allow


def plan(schedule: Schedule, observed: Observation, before: dict[str, Any]) -> Plan:
    """The next action; `before` is the status so far."""
    if schedule.deleting:
        return Plan(Phase.SUSPENDED, Reason.GONE, "The EtcdBackupSchedule is being deleted.", requeue=SETTLED)
    since = _since(schedule, observed.now, before)
    try:
        due = _due(schedule, observed.now, since)
        following = next(runs_after(schedule, max(observed.now, since)))
    except ScheduleError as error:
        return Plan(Phase.INVALID, Reason.INVALID, f"{error}.", requeue=SETTLED, record={"nextRunTime": None})
    except StopIteration:
        message = (
            f"spec.schedule {schedule.cron!r} is never due: no date matches it. Write a day that its months have, such "
            "as 28, or L for the last day of the month."
        )
        return Plan(Phase.INVALID, Reason.NEVER_DUE, message, requeue=SETTLED, record={"nextRunTime": None})
    if schedule.suspend:
        passed = {"lastScheduleTime": time_text(due[-1])} if due else {}
        message = "spec.suspend is true: no run starts, and runs that are missed now do not start later."
        result = {**passed, "nextRunTime": None}
        suspended = Plan(Phase.SUSPENDED, Reason.SUSPENDED, message, record=result, requeue=_settling(observed))
        return _prune(schedule, observed, suspended)
    ready = _ready(schedule, due, observed.now)
    begins = min(run + schedule.delay(run) for run in (*due, following) if run not in ready)
    return _run(schedule, observed, ready, begins) if ready else _wait(schedule, observed, begins)


def run_due(schedule: Schedule, now: datetime, before: dict[str, Any]) -> str:
    """The name of the EtcdBackup of the run that is to be started now; "" for none."""
    try:
        ready = _ready(schedule, _due(schedule, now, _since(schedule, now, before)), now)
    except ScheduleError:
        return ""
    return schedule.tick(ready[-1]) if ready else ""


def _since(schedule: Schedule, now: datetime, before: dict[str, Any]) -> datetime:
    noted = datetime.fromisoformat(before["lastScheduleTime"]) if "lastScheduleTime" in before else schedule.created
    return max(noted, now - schedule.deadline - schedule.jitter)  # what was due before is too late to start


def _due(schedule: Schedule, now: datetime, since: datetime) -> list[datetime]:
    return list(takewhile(lambda run: run <= now, runs_after(schedule, since)))


def _ready(schedule: Schedule, due: list[datetime], now: datetime) -> list[datetime]:
    return [run for run in due if run + schedule.delay(run) <= now]


def _run(schedule: Schedule, observed: Observation, ready: list[datetime], begins: datetime) -> Plan:
    """A run is due: the latest one. Earlier ones that were missed are skipped."""
    run, made = ready[-1], {each.name for each in observed.backups}
    missed = sum(schedule.tick(earlier) not in made for earlier in ready[:-1])
    noted = {"lastScheduleTime": time_text(run), "nextRunTime": time_text(begins)}
    active = [each for each in observed.backups if not each.done and not each.deleting and each.due != run]
    skipped = f" {missed} earlier {'run was' if missed == 1 else 'runs were'} missed." if missed else ""
    if why := _unfinished(schedule, active):
        message = f"Skipped the run of {time_text(run)}: {why}{skipped}"
        return Plan(Phase.ACTIVE, Reason.RUN_SKIPPED, message, record=noted)
    if observed.foreign:
        message = (
            f"EtcdBackup {schedule.tick(run)}: this schedule did not create it, so the run can't start. Delete it."
        )
        return Plan(Phase.ACTIVE, Reason.FOREIGN_OBJECT, message, requeue=WATCHFUL)
    replaced = tuple(Ref(each.name, each.uid) for each in active) if schedule.concurrency == "Replace" else ()
    noted |= {"lastBackup": schedule.tick(run)}
    message = f"Starting {schedule.tick(run)}.{skipped}"
    # The status is written before the action. If it recorded the run then, a crash in between would lose the run.
    unnoted = {key: value for key, value in noted.items() if key != "lastScheduleTime"}
    if schedule.tick(run) in made:
        return Plan(Phase.ACTIVE, Reason.RUN_STARTED, f"Started {schedule.tick(run)}.{skipped}", record=noted)
    action = StartBackup(_backup(schedule, run), replaced)
    return Plan(Phase.ACTIVE, Reason.STARTING_RUN, message, action, record=unnoted)


def _unfinished(schedule: Schedule, active: Sequence[Made]) -> str:
    """Why a run can't start beside those that are not finished, and what to do; "" when it can."""
    if active and schedule.concurrency == "Forbid":
        return f"{active[0].name} is not finished. Run less often, or set spec.concurrencyPolicy."
    if schedule.concurrency == "Allow" and len(active) >= _AT_ONCE:
        return f"{len(active)} runs are not finished, and no more than {_AT_ONCE} may be. Run less often."
    return ""


def _backup(schedule: Schedule, run: datetime) -> Manifest:
    # Deleting a schedule deletes no backup. A backup that the schedule prunes is deleted with its data.
    spec = {**dict(schedule.template), "deletion": {"storage": "Delete"}}
    return manifest(
        schedule.namespace,
        schedule.tick(run),
        f"EtcdBackupSchedule/{schedule.name}",
        spec,
        labels={SCHEDULE_LABEL: schedule.name, SCHEDULE_UID: schedule.uid},
        annotations={DUE: time_text(run)},
    )


def _wait(schedule: Schedule, observed: Observation, begins: datetime) -> Plan:
    left = max(1, int((begins - observed.now).total_seconds()) + 1)
    requeue = min(left, _settling(observed))
    message = f"The next run starts at {time_text(begins)}."
    record = {"nextRunTime": time_text(begins)}
    waiting = Plan(Phase.ACTIVE, Reason.WAITING, message, record=record, requeue=requeue)
    return _prune(schedule, observed, waiting)


def _settling(observed: Observation) -> int:
    """Seconds until the next look: when a run ends, another may have to be pruned."""
    return 5 if any(not each.done for each in observed.backups) else SETTLED


def _prune(schedule: Schedule, observed: Observation, otherwise: Plan) -> Plan:
    kept = [
        Kept(each.name, each.due, each.phase == "Succeeded", each.done)
        for each in observed.backups
        if not each.deleting
    ]
    names = to_delete(kept, schedule.retention)
    if not names:
        return otherwise
    message = f"Deleting {', '.join(names)}: spec.retention does not keep them."
    refs = tuple(Ref(each.name, each.uid) for each in observed.backups if each.name in names)
    return Plan(otherwise.phase, Reason.PRUNING, message, PruneBackups(refs), record=otherwise.record)


def status(schedule: Schedule, observed: Observation, done: Plan, before: dict[str, Any]) -> dict[str, Any]:
    """The whole status."""
    ended = sorted((each for each in observed.backups if each.done and not each.deleting), key=lambda each: each.due)
    good = [each for each in ended if each.phase == "Succeeded"]
    well = bool(ended) and ended[-1].phase == "Succeeded"
    told = f"{ended[-1].name} {ended[-1].phase.lower()}: {ended[-1].message}" if ended else "No run has finished yet."
    said = (
        ("Active", str(done.phase is Phase.ACTIVE), str(done.reason), done.message),
        ("BackedUp", str(well) if ended else "Unknown", "LastRun" if ended else "NoRun", told),
    )
    return {
        "phase": str(done.phase),
        "message": f"{told} {done.message}" if ended and not well else done.message,
        "observedGeneration": schedule.generation,
        "kept": len(good),
        "lastSuccessfulTime": good[-1].completed if good else before.get("lastSuccessfulTime"),
        **done.record,
        "conditions": conditions(said, schedule.generation, before.get("conditions", []), observed.now),
    }


def events(_: Schedule, planned: Plan, before: dict[str, Any]) -> list[Event]:
    """Each run has its event, also one that is started instead of the run before."""
    another = planned.record.get("lastBackup", before.get("lastBackup")) != before.get("lastBackup")
    return transition(planned, {} if another else before)


def gone(name: str) -> Plan:
    return Plan(Phase.SUSPENDED, Reason.GONE, f"EtcdBackupSchedule {name} is gone.", requeue=SETTLED)
