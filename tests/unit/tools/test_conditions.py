"""Every phase and reason is explained, and the conditions on the page are those that objects have."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import Backup, ClaimStore, Destination
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.api.restore import Restore
from ansible_collections.etcdops.etcd.plugins.module_utils.api.schedule import Schedule
from ansible_collections.etcdops.etcd.plugins.module_utils.backup import plan as backup
from ansible_collections.etcdops.etcd.plugins.module_utils.backup import planner as backup_planner
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import plan as cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import status as cluster_status
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.memory import (
    Memory,
    Serving,
    Upgrade,
    upgrade_record,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.situation import situation_of
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.upgrade import outcome
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


def _check(name: str, status: dict[str, Any]) -> None:
    """The status has the documented conditions, with documented reasons."""
    kind = next(kind for kind in conditions.KINDS if kind.name == name)
    assert [each["type"] for each in status["conditions"]] == list(kind.conditions)
    assert {each["reason"] for each in status["conditions"]} <= {*map(str, kind.reasons), *kind.others}


def test_conditions_of_a_backup_are_documented() -> None:
    made = Backup("one", "ns", "uid", 1, "example", Destination(claim=ClaimStore("disk")))
    plan = Plan(backup.Phase.RUNNING, backup.Reason.RUNNING, "")
    status = backup_planner.status(made, backup.Observation(NOW), plan, {})
    _check("EtcdBackup", status)


def test_conditions_of_a_restore_are_documented() -> None:
    made = Restore("back", "ns", "uid", 1, "example", False)
    plan = Plan(restore.Phase.VERIFYING, restore.Reason.VERIFYING, "")
    status = restore_planner.status(made, restore.Observation(NOW), plan, {})
    _check("EtcdRestore", status)


def test_conditions_of_a_schedule_are_documented() -> None:
    made = Schedule("hourly", "ns", "uid", 1, NOW, "example", "0 * * * *")
    plan = Plan(schedule.Phase.ACTIVE, schedule.Reason.WAITING, "")
    status = schedule_planner.status(made, schedule.Observation(NOW), plan, {})
    _check("EtcdBackupSchedule", status)


def test_conditions_of_a_cluster_are_documented() -> None:
    contested = Memory(serving=Serving("a/one", NOW, before="b/other", contested=True))
    observed = Observation(NOW, contested, operator="a/one")
    situation = situation_of(Cluster("example", "ns", "uid", 1, 3, "3.6.16"), observed)
    upgrade = upgrade_record(Upgrade("3.5.35", "3.6.16", NOW, completed=NOW))
    plan = Plan(cluster.Phase.RUNNING, cluster.Reason.ALL_HEALTHY, "", record=upgrade)
    before = {"lastBackup": {"name": "one", "time": "2026-11-16T12:00:00Z", "revision": 7}}
    _check("EtcdCluster", cluster_status.status(situation, plan, before))


@pytest.mark.parametrize(
    ("source", "reason"), [("3.5.35", "Upgraded"), ("3.7.3", "Downgraded"), ("3.6.16", "RolledBack")]
)
def test_outcomes_of_an_upgrade_are_documented(source: str, reason: str) -> None:
    assert outcome(Upgrade(source, "3.6.16", NOW, completed=NOW))[0] == reason
    assert reason in conditions.KINDS[0].others
