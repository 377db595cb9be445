from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import FAILED_PRECONDITION, EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.restart_order import (
    Voter,
    objection,
    restart_order,
    transferee,
    voters,
)

from .views import healthy, learner, listed, member, status, view

LEADER, SECOND, THIRD = (
    Voter(1, "m1", True, 100, leads=True, position=0),
    Voter(2, "m2", True, 100, position=1),
    Voter(3, "m3", True, 100, position=2),
)
THREE = [LEADER, SECOND, THIRD]


def _names(found: list[Voter]) -> list[str]:
    return [voter.name for voter in found]


def test_leader_is_restarted_last_and_the_highest_follower_first() -> None:
    assert _names(restart_order(THREE)) == ["m3", "m2", "m1"]


def test_unhealthy_voter_is_restarted_first_even_if_it_leads() -> None:
    assert _names(restart_order([LEADER, replace(SECOND, healthy=False), THIRD])) == ["m2", "m3", "m1"]
    assert _names(restart_order([replace(LEADER, healthy=False), SECOND, THIRD])) == ["m1", "m3", "m2"]


def test_updated_voters_are_not_restarted() -> None:
    assert _names(restart_order([LEADER, SECOND, replace(THIRD, updated=True)])) == ["m2", "m1"]


def test_voters_have_what_their_members_answer() -> None:
    members = listed(member(1), member(2), member(3), member(4, learner=True))
    found = view(
        {
            1: healthy(status(1, applied=7), members),
            2: healthy(status(2, applied=6, version="3.6.17"), members),
            4: learner(4),
        }
    )
    assert voters(found, "3.6.17") == [
        Voter(1, "m1", True, 7, leads=True, position=0),
        Voter(2, "m2", True, 6, updated=True, position=1),
        Voter(3, "m3", False, 0, position=2),
    ]
    assert not any(voter.updated for voter in voters(found))


def test_healthy_voter_may_restart_when_all_others_are_healthy_and_in_sync() -> None:
    assert objection(THREE, "m3") == ""


def test_healthy_voter_must_not_restart_beside_an_unhealthy_one() -> None:
    assert objection([LEADER, replace(SECOND, healthy=False), THIRD], "m3") == "m2 is not healthy"


@pytest.mark.parametrize(("applied", "expected"), [(5000, ""), (4999, "m2 is not in sync")])
def test_healthy_voter_must_not_restart_beside_one_that_is_behind(applied: int, expected: str) -> None:
    ahead = [replace(LEADER, applied=10_000), replace(SECOND, applied=applied), replace(THIRD, applied=10_000)]
    assert objection(ahead, "m3") == expected


@pytest.mark.parametrize(
    ("healthy_voters", "expected"), [((1, 2), ""), ((1,), "only 1 of 3 voters would be left"), ((), "only 0 of 3")]
)
def test_unhealthy_voter_may_restart_when_the_others_have_quorum(healthy_voters: tuple[int], expected: str) -> None:
    found = [replace(voter, healthy=voter.id in healthy_voters) for voter in THREE]
    why = objection(found, "m3")
    assert why.startswith(expected)
    assert bool(why) == bool(expected)


def test_member_that_is_no_voter_restarts_only_beside_healthy_voters() -> None:
    assert objection(THREE, "m4") == ""
    assert objection([LEADER, SECOND, replace(THIRD, healthy=False)], "m4") == "m3 is not healthy"


def test_follower_restarts_without_a_transfer() -> None:
    assert transferee(THREE, "m3") is None


def test_only_voter_restarts_without_a_transfer() -> None:
    assert transferee([LEADER], "m1") is None


def test_leader_moves_leadership_before_it_restarts() -> None:
    assert transferee([LEADER, SECOND, replace(THIRD, updated=True)], "m1") == replace(THIRD, updated=True)
    assert transferee([LEADER, replace(SECOND, applied=101), THIRD], "m1") == replace(SECOND, applied=101)


def test_preferred_transferee_is_chosen_if_it_is_healthy() -> None:
    ahead = [LEADER, replace(SECOND, applied=101), THIRD]
    assert transferee(ahead, "m1", preferred=3) == THIRD
    assert transferee(ahead, "m1", preferred=9) == replace(SECOND, applied=101)


def test_restart_that_would_cost_the_quorum_is_refused() -> None:
    with pytest.raises(EtcdError, match="m3 is not restarted: m2 is not healthy") as refused:
        transferee([LEADER, replace(SECOND, healthy=False), THIRD], "m3")
    assert refused.value.code == FAILED_PRECONDITION


def test_leader_without_a_successor_is_not_restarted() -> None:
    """An unhealthy leader of five whose healthy followers are all behind."""
    leader = replace(LEADER, healthy=False, applied=10_000)
    behind = [Voter(number, f"m{number}", True, 1) for number in (2, 3, 4)]
    with pytest.raises(EtcdError, match="m1 is not restarted: it leads, and no other voter can"):
        transferee([leader, *behind], "m1")
