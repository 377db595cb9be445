from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.schedule import Retention, Schedule, runs_after
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Ref, spread
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule.plan import (
    Made,
    Observation,
    Phase,
    PruneBackups,
    Reason,
    StartBackup,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule.planner import events, plan, status

CREATED = datetime(2026, 11, 16, 10, 30, tzinfo=UTC)
HOURLY = Schedule("hourly", "ns", "uid-1", 1, CREATED, "example", "0 * * * *", template=(("cluster", "example"),))


class World:
    """The schedule's EtcdBackups and status, as the API server would keep them; each run takes a while."""

    def __init__(self, schedule: Schedule, takes: timedelta = timedelta(minutes=1)) -> None:
        self.schedule, self.takes = schedule, takes
        self.status: dict[str, Any] = {}
        self.made: dict[str, datetime] = {}  # when each was begun
        self.begun: list[str] = []
        self.deleted: list[str] = []

    def reconcile(self, now: datetime, *, crash: bool = False) -> int:
        """One reconcile, with a crash after the status was written or none; returns when to come back."""
        backups = tuple(self._seen(name, begun, now) for name, begun in self.made.items())
        seen = Observation(now, backups)
        planned = plan(self.schedule, seen, self.status)
        self.status |= status(self.schedule, seen, planned, self.status)
        self.status = {key: value for key, value in self.status.items() if value is not None}
        if not crash:
            match planned.action:
                case PruneBackups(pruned):
                    self._delete(pruned)
                case StartBackup(backup, replaced):
                    self._delete(replaced)
                    name = backup["metadata"]["name"]
                    assert name not in self.begun
                    self.begun.append(name)
                    self.made[name] = now
        return spread(planned.requeue, self.schedule.uid)

    def _delete(self, refs: tuple[Ref, ...]) -> None:
        for ref in refs:
            self.deleted.append(ref.name)
            del self.made[ref.name]

    def _seen(self, name: str, begun: datetime, now: datetime) -> Made:
        due = datetime.strptime(name.removeprefix("hourly-"), "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
        done = now - begun >= self.takes
        return Made(name, due, "Succeeded" if done else "Running", "2026-11-16T00:00:00Z" if done else "")

    def live(self, start: datetime, end: datetime) -> None:
        now = start
        while now < end:
            now += timedelta(seconds=self.reconcile(now))


def test_each_run_starts_once_and_on_time() -> None:
    world = World(HOURLY)
    world.live(CREATED, CREATED + timedelta(hours=5))
    assert world.begun == [f"hourly-20261116-{hour}0000" for hour in range(11, 16)]
    assert all(begun.minute == 0 and begun.second <= 2 for begun in world.made.values())
    assert world.status["lastScheduleTime"] == "2026-11-16T15:00:00Z"
    assert world.status["nextRunTime"] == "2026-11-16T16:00:00Z"


def test_crash_at_any_point_loses_no_run_and_starts_none_twice() -> None:
    due = datetime(2026, 11, 16, 11, tzinfo=UTC)
    for crash_at in range(4):
        world = World(HOURLY)
        now = due + timedelta(seconds=1)
        for turn in range(8):
            world.reconcile(now, crash=turn == crash_at)
            now += timedelta(seconds=1)
        assert world.begun == ["hourly-20261116-110000"]


def test_missed_runs_are_caught_up_once_within_the_deadline() -> None:
    world = World(HOURLY)
    world.live(CREATED, CREATED + timedelta(hours=1))
    back = datetime(2026, 11, 16, 14, 20, tzinfo=UTC)  # no operator ran at 12, 13 and 14
    world.live(back, back + timedelta(minutes=5))
    assert world.begun[1:] == ["hourly-20261116-140000"]

    late = World(replace(HOURLY, deadline=timedelta(minutes=10)))
    late.live(back, back + timedelta(minutes=5))
    assert late.begun == []


def test_concurrency_policy_decides_about_a_run_that_is_not_finished() -> None:
    slow = timedelta(minutes=90)
    ends = CREATED + timedelta(hours=3)
    forbid = World(HOURLY, slow)
    forbid.live(CREATED, ends)
    assert [name[-6:] for name in forbid.begun] == ["110000", "130000"]
    allow = World(replace(HOURLY, concurrency="Allow"), slow)
    allow.live(CREATED, ends)
    assert [name[-6:] for name in allow.begun] == ["110000", "120000", "130000"]
    again = World(replace(HOURLY, concurrency="Replace"), slow)
    again.live(CREATED, ends)
    assert [name[-6:] for name in again.begun] == ["110000", "120000", "130000"]
    assert [name[-6:] for name in again.deleted] == ["110000", "120000"]


def test_runs_delayed_beyond_the_next_due_time_still_start() -> None:
    world = World(replace(HOURLY, jitter=timedelta(hours=2), concurrency="Allow"))
    world.live(CREATED, CREATED + timedelta(hours=12))
    assert len(world.begun) >= 5
    assert all(world.made[name] >= world._seen(name, CREATED, CREATED).due for name in world.made)


def test_run_started_before_a_crash_does_not_count_as_missed() -> None:
    noon, one = (datetime(2026, 11, 16, hour, tzinfo=UTC) for hour in (12, 13))
    before = {"lastScheduleTime": "2026-11-16T11:00:00Z"}
    seen = Observation(one, (Made("hourly-20261116-120000", noon, "Succeeded"),))
    patient = replace(HOURLY, deadline=timedelta(hours=2))
    assert plan(patient, seen, before).message == "Starting hourly-20261116-130000."
    assert "1 earlier run was missed" in plan(patient, Observation(one), before).message


def test_run_that_takes_the_place_of_an_unstarted_one_is_an_event_of_its_own() -> None:
    noon, one = (datetime(2026, 11, 16, hour, tzinfo=UTC) for hour in (12, 13))
    patient = replace(HOURLY, deadline=timedelta(hours=2))
    first = plan(patient, Observation(noon), {})
    before = status(patient, Observation(noon), first, {})  # then the operator was killed
    again = plan(patient, Observation(noon), before)
    assert events(patient, again, before) == []
    (event,) = events(patient, plan(patient, Observation(one), before), before)
    assert event.message == "Starting hourly-20261116-130000. 1 earlier run was missed."


def test_run_that_ends_while_suspended_is_pruned_soon() -> None:
    due = [datetime(2026, 11, 16, hour, tzinfo=UTC) for hour in (11, 12)]
    running = [
        Made(f"hourly-20261116-{each:%H}0000", each, phase)
        for each, phase in zip(due, ("Succeeded", "Running"), strict=True)
    ]
    suspended = replace(HOURLY, suspend=True, retention=Retention(last=1))
    waiting = plan(suspended, Observation(due[1], tuple(running)), {})
    assert (waiting.action, waiting.requeue) == (None, 5)
    done = (running[0], replace(running[1], phase="Succeeded"))
    assert plan(suspended, Observation(due[1], done), {}).action == PruneBackups((Ref("hourly-20261116-110000", ""),))


def test_failed_run_is_reported_with_its_reason() -> None:
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC)
    failed = Made("hourly-20261116-120000", noon, "Failed", message="The disk is full.")
    seen, before = Observation(noon + timedelta(minutes=5), (failed,)), {"lastScheduleTime": "2026-11-16T12:00:00Z"}
    told = status(HOURLY, seen, plan(HOURLY, seen, before), before)
    assert told["message"].startswith("hourly-20261116-120000 failed: The disk is full. The next run starts")
    assert {each["type"]: each["message"] for each in told["conditions"]}["BackedUp"].endswith("The disk is full.")


def test_suspended_schedule_starts_nothing_and_catches_nothing_up() -> None:
    world = World(replace(HOURLY, suspend=True))
    world.live(CREATED, CREATED + timedelta(hours=3))
    assert world.begun == []
    assert world.status["phase"] == Phase.SUSPENDED
    world.schedule = HOURLY
    now = CREATED + timedelta(hours=3)
    world.live(now, now + timedelta(minutes=15))
    assert world.begun == []  # runs that were due in the meantime are not caught up
    world.live(now + timedelta(minutes=15), now + timedelta(minutes=35))
    assert [name[-6:] for name in world.begun] == ["140000"]


def test_jitter_delays_a_run_by_a_stable_time() -> None:
    jittery = replace(HOURLY, jitter=timedelta(minutes=10))
    due = next(runs_after(jittery, CREATED))
    delay = jittery.delay(due)
    assert timedelta() <= delay <= timedelta(minutes=10)
    assert delay == jittery.delay(due)
    assert delay != replace(jittery, uid="another").delay(due)
    world = World(jittery)
    world.live(CREATED, CREATED + timedelta(hours=1))
    (begun,) = world.made.values()
    assert timedelta() <= begun - due - delay <= timedelta(seconds=2)


def test_retention_deletes_old_backups() -> None:
    world = World(replace(HOURLY, retention=Retention(last=2)))
    world.live(CREATED, CREATED + timedelta(hours=6))
    assert len(world.begun) == 6
    assert [name[-6:] for name in world.made] == ["150000", "160000"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cron": "every day"}, "is not a cron expression"),
        ({"cron": "99 * * * *"}, "is not a cron expression"),
        ({"cron": "32 3 0 2 *"}, "is not a cron expression"),
        ({"cron": "@daily"}, "Write it in five fields: 0 0 * * *."),
        ({"cron": "@hourly"}, "Write it in five fields: 0 * * * *."),
        ({"cron": "@every 5m"}, "Write it in five fields: 0 3 * * *."),
        ({"cron": "* * * * * *"}, "more often than once a minute"),
        ({"cron": " */30 * * * * *"}, "more often than once a minute"),
        ({"zone": "Mars/Olympus"}, "is unknown"),
    ],
)
def test_invalid_schedule_is_reported(changed: dict[str, str], said: str) -> None:
    planned = plan(replace(HOURLY, **changed), Observation(CREATED), {})  # type: ignore[arg-type]
    assert (planned.phase, planned.reason, planned.action) == (Phase.INVALID, Reason.INVALID, None)
    assert said in planned.message


@pytest.mark.parametrize("cron", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9 *", "0 0 0 31 11 *"])
def test_schedule_that_no_date_matches_is_reported_with_what_to_write(cron: str) -> None:
    planned = plan(replace(HOURLY, cron=cron), Observation(CREATED), {})
    assert (planned.phase, planned.reason, planned.action) == (Phase.INVALID, Reason.NEVER_DUE, None)
    assert planned.message == (
        f"spec.schedule {cron!r} is never due: no date matches it. Write a day that its months have, such as 28, or L "
        "for the last day of the month."
    )


def test_unfinished_runs_are_limited_although_they_are_allowed() -> None:
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC)
    running = tuple(Made(f"hourly-{each}", noon - timedelta(hours=each), "Running") for each in range(1, 11))
    allowed = replace(HOURLY, concurrency="Allow")
    before = {"lastScheduleTime": "2026-11-16T11:00:00Z"}
    assert isinstance(plan(allowed, Observation(noon, running[:-1]), before).action, StartBackup)
    planned = plan(allowed, Observation(noon, running), before)
    assert (planned.reason, planned.action) == (Reason.RUN_SKIPPED, None)


def test_backup_of_a_run_has_labels_and_no_owner() -> None:
    planned = plan(HOURLY, Observation(datetime(2026, 11, 16, 11, 0, 1, tzinfo=UTC)), {})
    assert isinstance(planned.action, StartBackup)
    made = planned.action.backup
    assert made["metadata"]["labels"] == {"etcdops.dev/schedule": "hourly", "etcdops.dev/schedule-uid": "uid-1"}
    assert "ownerReferences" not in made["metadata"]
    assert made["spec"] == {"cluster": "example", "deletion": {"storage": "Delete"}}


def test_schedule_that_is_being_deleted_starts_no_run() -> None:
    due = datetime(2026, 11, 16, 11, 0, 1, tzinfo=UTC)
    planned = plan(replace(HOURLY, deleting=True), Observation(due), {})
    assert (planned.reason, planned.action) == (Reason.GONE, None)


def test_skipped_run_is_recorded_and_reported() -> None:
    noon, one = (datetime(2026, 11, 16, hour, tzinfo=UTC) for hour in (12, 13))
    running = Made("hourly-20261116-120000", noon, "Running")
    planned = plan(HOURLY, Observation(one, (running,)), {"lastScheduleTime": "2026-11-16T12:00:00Z"})
    assert (planned.reason, planned.action) == (Reason.RUN_SKIPPED, None)
    assert planned.record["lastScheduleTime"] == "2026-11-16T13:00:00Z"
    assert planned.reason.warning


def test_run_waits_while_another_backup_has_its_name() -> None:
    """Nothing is replaced for a run that can't start."""
    due = CREATED.replace(hour=11, minute=0)
    running = (Made("hourly-20261116-100000", due - timedelta(hours=1), "Running", uid="1"),)
    replacing = replace(HOURLY, concurrency="Replace")
    waiting = plan(replacing, Observation(due, running, foreign=True), {})
    assert (waiting.reason, waiting.action) == (Reason.FOREIGN_OBJECT, None)
    assert "EtcdBackup hourly-20261116-110000" in waiting.message
    assert "lastScheduleTime" not in waiting.record
    started = plan(replacing, Observation(due, running), {})
    assert isinstance(started.action, StartBackup)
    assert started.action.replaced == (Ref("hourly-20261116-100000", "1"),)
    following = plan(replacing, Observation(due + timedelta(hours=1), running), {})  # its own name is free
    assert isinstance(following.action, StartBackup)


@pytest.mark.parametrize(("policy", "starts"), [("Allow", False), ("Replace", True), ("Forbid", False)])
def test_ten_unfinished_runs_are_the_limit_of_allow(
    policy: Literal["Allow", "Replace", "Forbid"], starts: bool
) -> None:
    now = CREATED + timedelta(hours=20)
    made = tuple(Made(f"hourly-{number}", CREATED + timedelta(hours=number), "Running") for number in range(10))
    planned = plan(replace(HOURLY, concurrency=policy), Observation(now, made), {})
    assert isinstance(planned.action, StartBackup) is starts
    if policy == "Allow":
        assert "10 runs are not finished, and no more than 10 may be." in planned.message
