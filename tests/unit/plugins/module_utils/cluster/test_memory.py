"""What a status remembers is read exactly as it was written."""

from __future__ import annotations

from datetime import timedelta

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.memory import (
    Join,
    Memory,
    Upgrade,
    join_record,
    recall,
    upgrade_record,
)

from .builders import NOW

LATER = NOW + timedelta(minutes=5)


@pytest.mark.parametrize(
    "upgrade",
    [
        Upgrade("3.5.35", "3.6.16", NOW),
        Upgrade("3.6.16", "3.7.3", NOW, "e-before", log_ready=True),
        Upgrade("3.6.16", "3.6.17", NOW, "e-before", completed=LATER),
    ],
)
def test_upgrade_is_read_as_it_was_written(upgrade: Upgrade) -> None:
    assert recall(upgrade_record(upgrade)).upgrade == upgrade
    assert upgrade.in_progress is (upgrade.completed is None)


@pytest.mark.parametrize("join", [Join("9", NOW), Join("9", NOW, failed=True, generation=4)])
def test_join_is_read_as_it_was_written(join: Join) -> None:
    assert recall(join_record(join)).join == join


def test_status_without_fields_remembers_nothing() -> None:
    assert recall({}) == Memory()
    assert upgrade_record(None) == {}  # keeps what was remembered
    assert join_record(None) == {"join": None}  # removes it
    assert recall({"upgrade": None, "join": None}) == Memory()


def test_cluster_id_and_phase_are_remembered() -> None:
    memory = recall({"clusterID": "abc", "phase": "Running"})
    assert (memory.cluster_id, memory.phase) == ("abc", "Running")


def _condition(kind: str, status: str, since: object) -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": str(since)}


def test_time_since_a_cluster_is_unhealthy_comes_from_its_conditions() -> None:
    conditions = [
        _condition("Available", "False", LATER),
        _condition("Degraded", "True", NOW),
        _condition("Progressing", "True", NOW - timedelta(days=1)),
    ]
    memory = recall({"conditions": conditions})
    assert (memory.unhealthy_since, memory.degraded_since) == (NOW, NOW)
    memory = recall({"conditions": [_condition("Available", "Unknown", LATER), _condition("Degraded", "False", NOW)]})
    assert (memory.unhealthy_since, memory.degraded_since) == (LATER, None)
    memory = recall({"conditions": [_condition("Available", "True", NOW), _condition("Degraded", "Unknown", NOW)]})
    assert (memory.unhealthy_since, memory.degraded_since) == (NOW, None)


@pytest.mark.parametrize(
    "status",
    [
        {"upgrade": {"from": "3.6.16", "to": "3.7.3"}},
        {"upgrade": {"from": "3.6.16", "to": "3.7.3", "started": "yesterday"}},
        {"join": {"member": "9"}},
        {"join": {"member": "9", "since": 7}},
    ],
)
def test_damaged_record_is_not_remembered(status: dict[str, dict[str, object]]) -> None:
    assert recall(status) == Memory()
