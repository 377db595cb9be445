"""Observing an EtcdBackupSchedule: the EtcdBackups that it created."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

from ..api.backup import DUE, SCHEDULE_UID
from ..api.schedule import Schedule, zone_of
from ..kube.client import Kube
from ..kube.manifest import Manifest
from .plan import Made, Observation


def observe(api: Kube, schedule: Schedule, _status: dict[str, Any]) -> Observation:
    found = api.list("EtcdBackup", schedule.namespace, f"{SCHEDULE_UID}={schedule.uid}")
    zone = zone_of(schedule)
    return Observation(datetime.now(UTC), tuple(_made(each, zone) for each in found))


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
    )
