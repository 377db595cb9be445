"""Two operators that serve one cluster are told of; one that replaces another is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import status
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.memory import recall
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.conditions import differs

from .builders import CLUSTER, NOW, planned, running, situation


def _reconciled(operator: str, minute: float, before: dict[str, Any]) -> dict[str, Any]:
    """The status after this operator has looked at a settled cluster."""
    memory = recall({**before, "clusterID": running().memory.cluster_id})
    observed = replace(running(), now=NOW + timedelta(minutes=minute), memory=memory, operator=operator)
    after = status.status(situation(CLUSTER, observed), planned(CLUSTER, observed), before)
    return _written(after)


def _written(found: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _written(value) if isinstance(value, dict) else value for key, value in found.items() if value is not None
    }


def _conflict(found: dict[str, Any]) -> str:
    return next((each["message"] for each in found["conditions"] if each["type"] == "OperatorConflict"), "")


def test_two_operators_that_take_turns_are_told_of() -> None:
    first = _reconciled("a/etcdops", 0, {})
    second = _reconciled("b/etcdops", 1, first)
    assert not _conflict(second)
    third = _reconciled("a/etcdops", 6, second)
    assert _conflict(third).startswith("Operators a/etcdops and b/etcdops both serve this EtcdCluster.")
    assert _conflict(_reconciled("b/etcdops", 7, third))


def test_conflict_ends_when_one_operator_has_stopped() -> None:
    found: dict[str, Any] = {}
    for minute, operator in enumerate(("a/etcdops", "b/etcdops", "a/etcdops")):
        found = _reconciled(operator, minute, found)
    assert _conflict(_reconciled("a/etcdops", 10, found))
    assert not _conflict(_reconciled("a/etcdops", 20, found))


def test_operator_that_replaces_another_is_no_conflict() -> None:
    found = _reconciled("a/etcdops", 0, {})
    for minute in (1, 6, 11, 30):
        found = _reconciled("b/etcdops", minute, found)
        assert not _conflict(found)
    assert found["operator"] == {"name": "b/etcdops", "since": "2026-11-16T00:01:00Z", "before": "a/etcdops"}


def test_only_operator_writes_its_name_once() -> None:
    first = _reconciled("a/etcdops", 0, {})
    assert not differs(_reconciled("a/etcdops", 5, first), first)


def test_operator_without_a_name_leaves_the_name_alone() -> None:
    first = _reconciled("a/etcdops", 0, {})
    assert _reconciled("", 5, first)["operator"] == first["operator"]
