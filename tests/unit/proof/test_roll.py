from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Status

from proof import roll
from proof.roll import Look, Restart

NAMES = ("a-0", "a-1", "a-2")


def _looks(*order: str, leaders: str = "0001") -> list[Look]:
    """Each of these pods goes, comes, and serves; who leads from when it goes on is said by its ordinal."""
    return list(_told(order, leaders))


def _told(order: tuple[str, ...], leaders: str) -> Iterator[Look]:
    pods = {name: f"{name} 0" for name in NAMES}
    at = 0.0
    yield Look(at, dict(pods), dict.fromkeys(NAMES, "3.5.35"), f"a-{leaders[0]}")
    versions = dict.fromkeys(NAMES, "3.5.35")
    for number, name in enumerate(order, start=1):
        others = {key: value for key, value in pods.items() if key != name}
        serving = {key: value for key, value in versions.items() if key != name}
        leader = f"a-{leaders[number]}"
        yield Look(at + 1, others, serving, "" if number == len(order) else leader)
        pods[name] = f"{name} {number}"
        yield Look(at + 2, dict(pods), serving, leader)
        versions[name] = "3.6.16"
        at += 3
        yield Look(at, dict(pods), dict(versions), leader)


def test_one_after_the_other_and_the_leader_last() -> None:
    looks = _looks("a-1", "a-2", "a-0")
    assert roll.wrong(looks) == []
    assert roll.restarts(looks) == [
        Restart("a-1", 1, 3, "a-0"),
        Restart("a-2", 4, 6, "a-0"),
        Restart("a-0", 7, 9, "a-0"),
    ]
    found = roll.report(looks)
    assert (found.order, found.first_led, found.hand_overs, found.seconds) == (["a-1", "a-2", "a-0"], "a-0", 1, 8)
    assert set(found.versions.values()) == {"3.6.16"}


def test_nobody() -> None:
    looks = _looks()
    assert roll.restarts(looks) == []
    assert roll.wrong(looks) == [f"{name} was restarted 0 times" for name in NAMES]


@pytest.mark.parametrize(
    ("looks", "said"),
    [
        (_looks("a-0", "a-1", "a-2", leaders="0112"), "a-0 led and was restarted before a-1"),
        (_looks("a-0", "a-1", "a-2", leaders="1111"), "a-2 was the last, and a-1 led before"),
        (_looks("a-1", "a-2"), "a-0 was restarted 0 times"),
        (_looks("a-1", "a-2", "a-1", "a-0", leaders="00000"), "a-1 was restarted 2 times"),
        (_looks("a-1", "a-2", "a-0")[:-1], "a-0 is not back"),
    ],
)
def test_what_must_not_be(looks: list[Look], said: str) -> None:
    assert said in roll.wrong(looks)


def test_two_at_once() -> None:
    pods, versions = {name: f"{name} 0" for name in NAMES}, dict.fromkeys(NAMES, "3.5.35")
    after = {name: f"{name} 1" for name in NAMES}
    looks = [
        Look(0, pods, versions, "a-0"),
        Look(1, {"a-0": "a-0 0", "a-2": "a-2 0"}, {"a-0": "3.5.35", "a-2": "3.5.35"}, "a-0"),
        Look(2, {"a-0": "a-0 0", "a-1": "a-1 1"}, {"a-0": "3.5.35"}, "a-0"),
        Look(3, after | {"a-0": "a-0 0"}, versions, "a-0"),
        Look(4, {"a-1": "a-1 1", "a-2": "a-2 1"}, {"a-1": "3.5.35", "a-2": "3.5.35"}, "a-1"),
        Look(5, after, versions, "a-1"),
    ]
    assert roll.wrong(looks) == ["a-2 was restarted before a-1 served again"]


def test_a_container_that_ended_counts() -> None:
    looks = [*_looks(), Look(1, {**_looks()[0].pods, "a-1": "a-1 9"}, dict.fromkeys(NAMES, "3.5.35"), "a-0")]
    assert [restart.name for restart in roll.restarts(looks)] == ["a-1"]


def _status(member: int, leader: int, term: int) -> Status:
    return Status(member, 1, "3.6.16", "3.6", leader, term, 1, 1, 1, 1, 1, is_learner=False, errors=())


def test_who_leads() -> None:
    assert roll.leads({"a-0": _status(1, 2, 5), "a-1": _status(2, 2, 5)}) == "a-1"
    assert roll.leads({"a-0": _status(1, 1, 4), "a-1": _status(2, 2, 5)}) == "a-1"  # a-0 has not heard of it yet
    assert roll.leads({"a-0": _status(1, 2, 5)}) == ""


def test_hand_overs() -> None:
    assert roll.hand_overs(["a", "", "a", "b", "b", "", "a"]) == 2
    assert roll.hand_overs([]) == 0
