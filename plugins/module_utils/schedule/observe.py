"""Observing an EtcdBackupSchedule: the EtcdBackups that it created."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

from ..api.backup import DUE, SCHEDULE_UID
from ..api.schedule import Schedule, zone_of
from ..kube.client import Kube
from ..kube.manifest import Manifest
from .plan import Made, Observation
from .planner import run_due


def observe(api: Kube, schedule: Schedule, status: dict[str, Any]) -> Observation:
    now = datetime.now(UTC)
    found = api.list("EtcdBackup", schedule.namespace, f"{SCHEDULE_UID}={schedule.uid}")
    zone = zone_of(schedule)
    made, due = tuple(_made(each, zone) for each in found), run_due(schedule, now, status)
    unknown = due and due not in [each.name for each in made]
    foreign = api.get("EtcdBackup", schedule.namespace, due) if unknown else None
    return Observation(now, made, foreign is not None)


def _made(resource: Manifest, zone: tzinfo) -> Made:
    meta, status = resource["metadata"], resource.get("status", {})
    due = datetime.fromisoformat(meta["annotations"][DUE])
    return Made(
        name=meta["name"],
        due=due.astimezone(zone),
        phase=status.get("phase", "Pending"),
        completed=status.get("completionTime", ""),
        message=status.get("message", ""),
        deleting="deletionTimestamp" in meta,
        uid=meta["uid"],
    )
