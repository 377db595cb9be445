from __future__ import annotations

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import (
    Change,
    Wanted,
    applied,
    decide,
    find,
    quorum,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member


def _member(number: int, *, learner: bool = False, started: bool = True) -> Member:
    name, client_urls = (f"m{number}", (f"http://m{number}:2379",)) if started else ("", ())
    return Member(number, name, (f"http://m{number}:2380",), client_urls, learner)


def _voters(count: int) -> list[Member]:
    return [_member(number) for number in range(1, count + 1)]


def test_quorum_is_more_than_half() -> None:
    assert [quorum(voters) for voters in range(1, 8)] == [1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted("present", id=2),
        Wanted("present", name="m2"),
        Wanted("present", peer_urls=("http://m2:2380",)),
        Wanted("present", id=2, name="m2", peer_urls=("http://m2:2380",)),
        Wanted("present", name="m2", peer_urls=("http://elsewhere:2380",)),
    ],
)
def test_member_is_found_by_id_name_or_peer_urls(wanted: Wanted) -> None:
    assert find(wanted, _voters(3)) == _member(2)


def test_member_that_has_not_started_is_found_by_its_peer_urls() -> None:
    unstarted = _member(4, learner=True, started=False)
    wanted = Wanted("present", name="m4", peer_urls=("http://m4:2380",))
    assert find(wanted, [*_voters(3), unstarted]) == unstarted
    assert decide(wanted, [*_voters(3), unstarted], {1, 2, 3}) is None


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Wanted("absent", id=2, name="m3"), "m2 matches the id or peer_urls, but not the name m3"),
        (
            Wanted("absent", name="m9", peer_urls=("http://m2:2380",)),
            "m2 matches the id or peer_urls, but not the name m9",
        ),
        (
            Wanted("absent", name="m1", peer_urls=("http://m2:2380",)),
            "http://m2:2380 is a peer URL of another member, m2",
        ),
        (Wanted("absent", peer_urls=("http://m1:2380", "http://m2:2380")), "several members match"),
        (Wanted("absent", name="m1", peer_urls=("http://elsewhere:2380",)), "m1 has other peer URLs"),
        (Wanted("present", id=9), "no member has the id 9"),
        (Wanted("present", name="m9"), "give peer_urls to add it"),
        (Wanted("promoted", name="m9"), "no member m9 to promote"),
        (Wanted("promoted", id=255), "no member ff to promote"),
    ],
)
def test_contradictory_request_is_refused(wanted: Wanted, message: str) -> None:
    with pytest.raises(EtcdError, match=message):
        decide(wanted, _voters(3), {1, 2, 3})


def test_name_of_two_members_is_refused() -> None:
    twins = [_member(1), Member(2, "m1", ("http://m2:2380",), (), False)]
    with pytest.raises(EtcdError, match=r"several members match .1, 2.; use an id"):
        find(Wanted("absent", name="m1"), twins)


def test_change_is_decided_and_applied() -> None:
    members = [*_voters(3), _member(4, learner=True)]
    healthy = {1, 2, 3, 4}
    add = decide(Wanted("present", peer_urls=("http://m5:2380",)), members, healthy)
    assert add == Change("add", Member(0, "", ("http://m5:2380",), (), True))
    assert len(applied(add, members)) == 5

    update = decide(Wanted("present", name="m2", peer_urls=("http://new:2380",)), members, healthy)
    assert update == Change("update", _member(2), ("http://new:2380",))
    assert {member.peer_urls for member in applied(update, members)} >= {("http://new:2380",), ("http://m1:2380",)}

    promote = decide(Wanted("promoted", name="m4"), members, healthy)
    assert promote == Change("promote", _member(4, learner=True))
    assert not any(member.is_learner for member in applied(promote, members))

    remove = decide(Wanted("absent", name="m3"), members, healthy)
    assert remove == Change("remove", _member(3))
    assert [member.id for member in applied(remove, members)] == [1, 2, 4]

    for nothing in (Wanted("present", name="m1"), Wanted("promoted", name="m1"), Wanted("absent", name="m9")):
        assert decide(nothing, members, healthy) is None
    assert applied(None, members) == tuple(members)


@pytest.mark.parametrize(
    ("voters", "healthy", "victim", "allowed"),
    [
        (3, {1, 2, 3}, 3, True),
        (3, {1, 2}, 3, True),  # the one that is down
        (3, {1, 2}, 2, False),  # a good one while another is down
        (3, {1}, 3, False),
        (2, {1, 2}, 2, True),
        (2, {1}, 1, False),
        (1, {1}, 1, False),
        (5, {1, 2, 3}, 5, True),
        (5, {1, 2, 3}, 3, False),
        (4, {1, 2, 3}, 3, True),
    ],
)
def test_removal_that_costs_the_quorum_is_refused(voters: int, healthy: set[int], victim: int, allowed: bool) -> None:
    wanted = Wanted("absent", id=victim)
    if allowed:
        assert decide(wanted, _voters(voters), healthy) == Change("remove", _member(victim))
        return
    with pytest.raises(EtcdError, match="would lose quorum"):
        decide(wanted, _voters(voters), healthy)
    forced = Wanted("absent", id=victim, force=True)
    assert decide(forced, _voters(voters), healthy) == Change("remove", _member(victim))


def test_learner_is_added_and_removed_without_regard_to_quorum() -> None:
    members = [_member(1), _member(2), _member(3, learner=True)]
    assert decide(Wanted("absent", id=3), members, {1})
    assert decide(Wanted("present", peer_urls=("http://m4:2380",)), members, {1})


@pytest.mark.parametrize(("voters", "healthy", "allowed"), [(1, {1}, False), (2, {1, 2}, True), (3, {1, 2}, False)])
def test_voter_counts_for_quorum_before_it_has_started(voters: int, healthy: set[int], allowed: bool) -> None:
    wanted = Wanted("present", peer_urls=("http://new:2380",), learner=False)
    if allowed:
        assert decide(wanted, _voters(voters), healthy)
    else:
        with pytest.raises(EtcdError, match="add it with learner=true and promote it"):
            decide(wanted, _voters(voters), healthy)


def test_unhealthy_learner_is_not_promoted_where_its_vote_is_needed() -> None:
    members = [_member(1), _member(2, learner=True)]
    assert decide(Wanted("promoted", id=2), members, {1, 2})
    with pytest.raises(EtcdError, match="promoting m2 would leave 1 healthy of 2 voters where 2 are needed"):
        decide(Wanted("promoted", id=2), members, {1})
