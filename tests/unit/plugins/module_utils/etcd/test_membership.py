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


def test_quorum() -> None:
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
def test_a_member_is_found_by_what_is_known_of_it(wanted: Wanted) -> None:
    assert find(wanted, _voters(3)) == _member(2)


def test_one_that_has_not_started_is_found_by_its_urls_though_it_has_no_name() -> None:
    unstarted = _member(4, learner=True, started=False)
    wanted = Wanted("present", name="m4", peer_urls=("http://m4:2380",))
    assert find(wanted, [*_voters(3), unstarted]) == unstarted
    assert decide(wanted, [*_voters(3), unstarted], {1, 2, 3}) is None


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Wanted("absent", id=2, name="m3"), "not by the name m3"),
        (Wanted("absent", name="m9", peer_urls=("http://m2:2380",)), "m2 is meant by its id or peer_urls"),
        (
            Wanted("absent", name="m1", peer_urls=("http://m2:2380",)),
            "http://m2:2380 is a peer URL of another member, m2",
        ),
        (Wanted("absent", peer_urls=("http://m1:2380", "http://m2:2380")), "several members fit"),
        (Wanted("absent", name="m1", peer_urls=("http://elsewhere:2380",)), "m1 has other peer URLs"),
        (Wanted("present", id=9), "no member has the id 9"),
        (Wanted("present", name="m9"), "give peer_urls to add it"),
        (Wanted("promoted", name="m9"), "no member m9 to promote"),
        (Wanted("promoted", id=255), "no member ff to promote"),
    ],
)
def test_what_contradicts_itself_is_refused(wanted: Wanted, message: str) -> None:
    with pytest.raises(EtcdError, match=message):
        decide(wanted, _voters(3), {1, 2, 3})


def test_two_of_one_name() -> None:
    twins = [_member(1), Member(2, "m1", ("http://m2:2380",), (), False)]
    with pytest.raises(EtcdError, match=r"several members fit .1, 2.; name one by its id"):
        find(Wanted("absent", name="m1"), twins)


def test_changes_and_what_comes_of_them() -> None:
    members = [*_voters(3), _member(4, learner=True)]
    well = {1, 2, 3, 4}
    add = decide(Wanted("present", peer_urls=("http://m5:2380",)), members, well)
    assert add == Change("add", Member(0, "", ("http://m5:2380",), (), True))
    assert len(applied(add, members)) == 5

    update = decide(Wanted("present", name="m2", peer_urls=("http://new:2380",)), members, well)
    assert update == Change("update", _member(2), ("http://new:2380",))
    assert {member.peer_urls for member in applied(update, members)} >= {("http://new:2380",), ("http://m1:2380",)}

    promote = decide(Wanted("promoted", name="m4"), members, well)
    assert promote == Change("promote", _member(4, learner=True))
    assert not any(member.is_learner for member in applied(promote, members))

    remove = decide(Wanted("absent", name="m3"), members, well)
    assert remove == Change("remove", _member(3))
    assert [member.id for member in applied(remove, members)] == [1, 2, 4]

    for nothing in (Wanted("present", name="m1"), Wanted("promoted", name="m1"), Wanted("absent", name="m9")):
        assert decide(nothing, members, well) is None
    assert applied(None, members) == tuple(members)


@pytest.mark.parametrize(
    ("voters", "well", "victim", "allowed"),
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
def test_no_removal_costs_the_quorum(voters: int, well: set[int], victim: int, allowed: bool) -> None:
    wanted = Wanted("absent", id=victim)
    if allowed:
        assert decide(wanted, _voters(voters), well) == Change("remove", _member(victim))
        return
    with pytest.raises(EtcdError, match="would lose quorum"):
        decide(wanted, _voters(voters), well)
    forced = Wanted("absent", id=victim, force=True)
    assert decide(forced, _voters(voters), well) == Change("remove", _member(victim))


def test_a_learner_comes_and_goes_as_it_likes() -> None:
    members = [_member(1), _member(2), _member(3, learner=True)]
    assert decide(Wanted("absent", id=3), members, {1})
    assert decide(Wanted("present", peer_urls=("http://m4:2380",)), members, {1})


@pytest.mark.parametrize(("voters", "well", "allowed"), [(1, {1}, False), (2, {1, 2}, True), (3, {1, 2}, False)])
def test_a_voter_counts_before_it_has_started(voters: int, well: set[int], allowed: bool) -> None:
    wanted = Wanted("present", peer_urls=("http://new:2380",), learner=False)
    if allowed:
        assert decide(wanted, _voters(voters), well)
    else:
        with pytest.raises(EtcdError, match="add it with learner=true and promote it"):
            decide(wanted, _voters(voters), well)


def test_a_learner_that_is_down_is_not_promoted_where_its_vote_is_needed() -> None:
    members = [_member(1), _member(2, learner=True)]
    assert decide(Wanted("promoted", id=2), members, {1, 2})
    with pytest.raises(EtcdError, match="promoting m2 would leave 1 healthy of 2 voters where 2 are needed"):
        decide(Wanted("promoted", id=2), members, {1})
