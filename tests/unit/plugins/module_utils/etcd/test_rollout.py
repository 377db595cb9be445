"""The order of a rolling restart, and when a voter may restart."""

from __future__ import annotations

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.leadership import successor
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.rollout import Voter, restart_order, transferee


def voter(number: int, **known: bool | int) -> Voter:
    healthy = bool(known.pop("healthy", True))
    return Voter(number, f"m{number}", healthy, position=number, **known)  # type: ignore[arg-type]


def test_unhealthy_voters_restart_first_and_the_leader_last() -> None:
    voters = [voter(0, leads=True), voter(1), voter(2, healthy=False), voter(3), voter(4, updated=True)]
    assert [one.name for one in restart_order(voters)] == ["m2", "m3", "m1", "m0"]


def test_successor_is_updated_if_possible_and_most_advanced() -> None:
    leader = voter(0, leads=True, applied=90)
    others = [voter(1, applied=90), voter(2, applied=80, updated=True), voter(3, applied=70, updated=True)]
    assert successor([leader, *others], leader.id) == others[1]
    assert successor([leader, others[0]], leader.id) == others[0]
    assert successor([leader], leader.id) is None


@pytest.mark.parametrize(
    ("voters", "message"),
    [
        ([voter(0), voter(1), voter(2, healthy=False)], "m2 is not healthy"),
        ([voter(0), voter(1, applied=9_000), voter(2)], "m2 is not in sync"),
        ([voter(0, healthy=False), voter(1), voter(2, healthy=False)], "only 1 of 3 voters would be left"),
        ([voter(0, leads=True, applied=9_000), voter(1)], "m1 is not in sync"),
    ],
)
def test_voter_must_not_restart(voters: list[Voter], message: str) -> None:
    with pytest.raises(EtcdError, match=f"m0 is not restarted: {message}"):
        transferee(voters, "m0")


def test_voter_may_restart() -> None:
    assert transferee([voter(0), voter(1), voter(2)], "m0") is None
    assert transferee([voter(0, healthy=False), voter(1), voter(2)], "m0") is None  # it serves no requests anyway
    assert transferee([voter(0, leads=True)], "m0") is None  # the only voter can't move leadership


def test_preferred_transferee_leads_next_if_it_is_healthy() -> None:
    voters = [voter(0, leads=True), voter(1), voter(2)]
    assert transferee(voters, "m0", preferred=2) == voters[2]
    assert transferee(voters, "m0", preferred=7) == voters[1]
