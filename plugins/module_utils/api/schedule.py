"""The spec of an EtcdBackupSchedule as a dataclass, and when its runs are due."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from ..kube.manifest import Manifest

# What other programs write for five fields.
_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True)
class Retention:
    last: int = 7
    hourly: int = 0
    daily: int = 0
    weekly: int = 0


class ScheduleError(Exception):
    """A schedule or time zone that can't be parsed."""


@dataclass(frozen=True)
class Schedule:
    """One EtcdBackupSchedule."""

    name: str
    namespace: str
    uid: str
    generation: int
    created: datetime
    cluster: str
    cron: str
    zone: str = "UTC"
    jitter: timedelta = timedelta()
    deadline: timedelta = timedelta(hours=1)  # how late a run may start
    concurrency: Literal["Forbid", "Allow", "Replace"] = "Forbid"
    suspend: bool = False
    deleting: bool = False
    retention: Retention = field(default_factory=Retention)
    template: tuple[tuple[str, Any], ...] = ()  # what goes into the spec of each EtcdBackup

    def delay(self, due: datetime) -> timedelta:
        """How much later than due a run starts: always the same for the same run."""
        if not self.jitter:
            return timedelta()
        digest = hashlib.sha256(f"{self.uid} {due.timestamp():.0f}".encode()).digest()
        return timedelta(seconds=int.from_bytes(digest[:4]) % (int(self.jitter.total_seconds()) + 1))

    def tick(self, due: datetime) -> str:
        """The name of the EtcdBackup of a run: there can't be two."""
        return f"{self.name}-{due.astimezone(UTC):%Y%m%d-%H%M%S}"


def parse(resource: Manifest) -> Schedule:
    """The EtcdBackupSchedule that an API object declares."""
    meta, spec = resource["metadata"], resource["spec"]
    retention = spec.get("retention", {})
    return Schedule(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta["uid"],
        generation=meta.get("generation", 1),
        created=datetime.fromisoformat(meta["creationTimestamp"]),
        cluster=spec["cluster"],
        cron=spec["schedule"],
        zone=spec.get("timeZone", "UTC"),
        jitter=timedelta(seconds=spec.get("jitterSeconds", 0)),
        deadline=timedelta(seconds=spec.get("startingDeadlineSeconds", 3600)),
        concurrency=spec.get("concurrencyPolicy", "Forbid"),
        suspend=spec.get("suspend", False),
        deleting="deletionTimestamp" in meta,
        retention=Retention(**retention) if retention else Retention(),
        template=tuple(
            (key, spec[key])
            for key in ("cluster", "destination", "compression", "encryption", "deadlineSeconds")
            if key in spec
        ),
    )


def zone_of(schedule: Schedule) -> ZoneInfo:
    """Its time zone; UTC when the name is unknown, which the planner reports."""
    try:
        return ZoneInfo(schedule.zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def runs_after(schedule: Schedule, moment: datetime) -> Iterator[datetime]:
    """When runs are due after that, in the schedule's time zone; none when no date matches.

    ScheduleError when it can't be told.
    """
    zone = zone_of(schedule)
    if zone.key != schedule.zone:
        raise ScheduleError(f"spec.timeZone {schedule.zone} is unknown. Use a name such as Europe/Berlin")
    if schedule.cron.startswith("@"):
        fields = _SHORT.get(schedule.cron, "0 3 * * *")
        raise ScheduleError(f"spec.schedule {schedule.cron!r} is not supported. Write it in five fields: {fields}")
    parts = schedule.cron.split()
    if len(parts) == 6 and not parts[0].isdecimal():  # more Jobs than one a minute; the CRD refuses it, too
        raise ScheduleError(
            f"spec.schedule {schedule.cron!r} is due more often than once a minute. Use five fields such as 0 3 * * *, "
            "or one number of seconds in the first of six"
        )
    try:
        return CronSim(schedule.cron, moment.astimezone(zone))
    except CronSimError as error:
        if _would_match_january(schedule.cron):
            return iter(())
        message = (
            f"spec.schedule {schedule.cron!r} is not a cron expression ({error}). Use five fields such as 0 3 * * *"
        )
        raise ScheduleError(message) from error


def _would_match_january(cron: str) -> bool:
    """Whether only its months are too short for the day of the month: January has every day."""
    fields = cron.split()
    with suppress(CronSimError):
        CronSim(" ".join([*fields[:-2], "1", *fields[-1:]]), datetime(2026, 1, 1, tzinfo=UTC))
        return len(fields) > 4 and re.fullmatch("[1-9,*/-]+", fields[-2]) is not None
    return False
