from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Status

from tests.e2e.checks import rollout
from tests.e2e.checks.rollout import Restart, Sample

NAMES = ("a-0", "a-1", "a-2")


def _samples(*order: str, leaders: str = "0001") -> list[Sample]:
    """Samples of these pods restarting in order; `leaders` has the ordinal of the leader from each restart on."""
    return list(_sampled(order, leaders))


def _sampled(order: tuple[str, ...], leaders: str) -> Iterator[Sample]:
    pods = {name: f"{name} 0" for name in NAMES}
    at = 0.0
    yield Sample(at, dict(pods), dict.fromkeys(NAMES, "3.5.35"), f"a-{leaders[0]}")
    versions = dict.fromkeys(NAMES, "3.5.35")
    for number, name in enumerate(order, start=1):
        others = {key: value for key, value in pods.items() if key != name}
        healthy = {key: value for key, value in versions.items() if key != name}
        leader = f"a-{leaders[number]}"
        yield Sample(at + 1, others, healthy, "" if number == len(order) else leader)
        pods[name] = f"{name} {number}"
        yield Sample(at + 2, dict(pods), healthy, leader)
        versions[name] = "3.6.16"
        at += 3
        yield Sample(at, dict(pods), dict(versions), leader)


def test_rolling_restart_with_the_leader_last() -> None:
    samples = _samples("a-1", "a-2", "a-0")
    assert rollout.violations(samples) == []
    assert rollout.restarts(samples) == [
        Restart("a-1", 1, 3, "a-0"),
        Restart("a-2", 4, 6, "a-0"),
        Restart("a-0", 7, 9, "a-0"),
    ]
    found = rollout.report(samples)
    assert (found.order, found.first_leader, found.leader_changes, found.seconds) == (
        ["a-1", "a-2", "a-0"],
        "a-0",
        1,
        8,
    )
    assert set(found.versions.values()) == {"3.6.16"}


def test_no_restart() -> None:
    samples = _samples()
    assert rollout.restarts(samples) == []
    assert rollout.violations(samples) == [f"{name} was restarted 0 times" for name in NAMES]


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (_samples("a-0", "a-1", "a-2", leaders="0112"), "a-0 was the leader and was restarted before a-1"),
        (_samples("a-0", "a-1", "a-2", leaders="1111"), "a-2 was the last, but a-1 was the leader before"),
        (_samples("a-1", "a-2"), "a-0 was restarted 0 times"),
        (_samples("a-1", "a-2", "a-1", "a-0", leaders="00000"), "a-1 was restarted 2 times"),
        (_samples("a-1", "a-2", "a-0")[:-1], "a-0 is not healthy again"),
    ],
)
def test_violation_is_found(samples: list[Sample], said: str) -> None:
    assert said in rollout.violations(samples)


def test_two_restarts_at_once_are_a_violation() -> None:
    pods, versions = {name: f"{name} 0" for name in NAMES}, dict.fromkeys(NAMES, "3.5.35")
    after = {name: f"{name} 1" for name in NAMES}
    samples = [
        Sample(0, pods, versions, "a-0"),
        Sample(1, {"a-0": "a-0 0", "a-2": "a-2 0"}, {"a-0": "3.5.35", "a-2": "3.5.35"}, "a-0"),
        Sample(2, {"a-0": "a-0 0", "a-1": "a-1 1"}, {"a-0": "3.5.35"}, "a-0"),
        Sample(3, after | {"a-0": "a-0 0"}, versions, "a-0"),
        Sample(4, {"a-1": "a-1 1", "a-2": "a-2 1"}, {"a-1": "3.5.35", "a-2": "3.5.35"}, "a-1"),
        Sample(5, after, versions, "a-1"),
    ]
    assert rollout.violations(samples) == ["a-2 was restarted before a-1 was healthy again"]


def test_restarted_container_counts_as_a_restart() -> None:
    samples = [*_samples(), Sample(1, {**_samples()[0].pods, "a-1": "a-1 9"}, dict.fromkeys(NAMES, "3.5.35"), "a-0")]
    assert [restart.name for restart in rollout.restarts(samples)] == ["a-1"]


def _status(member: int, leader: int, term: int) -> Status:
    return Status(member, 1, "3.6.16", "3.6", leader, term, 1, 1, 1, 1, 1, is_learner=False, errors=())


def test_leader_has_the_latest_term() -> None:
    assert rollout.leader_of({"a-0": _status(1, 2, 5), "a-1": _status(2, 2, 5)}) == "a-1"
    assert (
        rollout.leader_of({"a-0": _status(1, 1, 4), "a-1": _status(2, 2, 5)}) == "a-1"
    )  # a-0 does not know the new leader yet
    assert rollout.leader_of({"a-0": _status(1, 2, 5)}) == ""


def test_leader_changes_are_counted() -> None:
    assert rollout.leader_changes(["a", "", "a", "b", "b", "", "a"]) == 2
    assert rollout.leader_changes([]) == 0
