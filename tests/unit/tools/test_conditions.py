"""Every phase and reason is explained, and the conditions on the page are those that objects have."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import Backup, ClaimStore, Destination
from ansible_collections.etcdops.etcd.plugins.module_utils.api.restore import Restore
from ansible_collections.etcdops.etcd.plugins.module_utils.api.schedule import Schedule
from ansible_collections.etcdops.etcd.plugins.module_utils.backup import plan as backup
from ansible_collections.etcdops.etcd.plugins.module_utils.backup import planner as backup_planner
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import plan as restore
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import planner as restore_planner
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule import plan as schedule
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule import planner as schedule_planner

from tools.generate import conditions

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.mark.parametrize("kind", conditions.KINDS, ids=lambda kind: kind.name)
def test_every_phase_and_reason_is_explained(kind: conditions.Kind) -> None:
    assert all(phase.meaning.endswith(".") for phase in kind.phases)
    assert all(reason.cause.endswith(".") for reason in kind.reasons)
    assert all(reason.remedy.endswith(".") for reason in kind.reasons if reason.remedy)
    assert all(reason.remedy for reason in kind.reasons if reason.blocked)


def _types(status: dict[str, Any]) -> list[str]:
    return [each["type"] for each in status["conditions"]]


def _documented(name: str) -> list[str]:
    return next(list(kind.conditions) for kind in conditions.KINDS if kind.name == name)


def test_conditions_of_a_backup_are_documented() -> None:
    made = Backup("one", "ns", "uid", 1, "example", Destination(claim=ClaimStore("disk")))
    plan = Plan(backup.Phase.RUNNING, backup.Reason.RUNNING, "")
    status = backup_planner.status(made, backup.Observation(NOW), plan, {})
    assert _types(status) == _documented("EtcdBackup")


def test_conditions_of_a_restore_are_documented() -> None:
    made = Restore("back", "ns", "uid", 1, "example", False)
    plan = Plan(restore.Phase.VERIFYING, restore.Reason.VERIFYING, "")
    status = restore_planner.status(made, restore.Observation(NOW), plan, {})
    assert _types(status) == _documented("EtcdRestore")


def test_conditions_of_a_schedule_are_documented() -> None:
    made = Schedule("hourly", "ns", "uid", 1, NOW, "example", "0 * * * *")
    plan = Plan(schedule.Phase.ACTIVE, schedule.Reason.WAITING, "")
    status = schedule_planner.status(made, schedule.Observation(NOW), plan, {})
    assert _types(status) == _documented("EtcdBackupSchedule")
