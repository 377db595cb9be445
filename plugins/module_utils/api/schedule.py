"""The spec of an EtcdBackupSchedule as a dataclass, and when its runs are due."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from ..kube.manifest import Manifest


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
    """When runs are due after that, in the schedule's time zone. ScheduleError when it can't be told."""
    zone = zone_of(schedule)
    if zone.key != schedule.zone:
        raise ScheduleError(f"spec.timeZone {schedule.zone} is unknown. Use a name such as Europe/Berlin")
    try:
        return CronSim(schedule.cron, moment.astimezone(zone))
    except CronSimError as error:
        message = (
            f"spec.schedule {schedule.cron!r} is not a cron expression ({error}). Use five fields such as 0 3 * * *"
        )
        raise ScheduleError(message) from error
