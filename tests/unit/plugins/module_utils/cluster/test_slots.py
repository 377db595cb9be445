from __future__ import annotations

from dataclasses import replace

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Node, Observed
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.slots import Team, gather, ordinal, stranger_name

from .clusters import CLUSTER, OTHER, answer, answering, listing, member, pod, running, unstarted, without

GONE = "cannot fetch cluster info from peer urls"


def _team(seen: Observed) -> Team:
    team = gather(CLUSTER, seen)
    assert team
    return team


def test_without_a_quorum_nobody_tells() -> None:
    assert gather(CLUSTER, replace(running(), members=None)) is None


def test_members_are_told_by_their_peer_urls() -> None:
    assert ordinal(CLUSTER, member(2, name="")) == 2
    assert ordinal(CLUSTER, member(12)) == 12
    assert ordinal(CLUSTER, OTHER) is None
    assert ordinal(CLUSTER, member(1, peer_urls=("https://e-1.e-peers.another.svc:2380",))) is None
    assert ordinal(CLUSTER, member(1, peer_urls=("https://e-01.e-peers.default.svc:2380",))) is None


def test_everybody_is_there() -> None:
    team = _team(running())
    assert [(seat.name, seat.id, seat.serves, seat.lost) for seat in team.voters] == [
        ("e-0", "1", True, ""),
        ("e-1", "2", True, ""),
        ("e-2", "3", True, ""),
    ]
    assert (team.votes, team.unwell, team.learners, team.crowded, team.ordinals) == (3, [], [], False, [0, 1, 2])


def test_a_pod_without_a_member_has_a_seat() -> None:
    seen = listing(running(), member(0), member(2))
    team = _team(seen)
    assert [(seat.name, seat.id) for seat in team.seats] == [("e-0", "1"), ("e-1", ""), ("e-2", "3")]
    assert (team.ordinals, team.votes) == ([0, 2], 2)


def test_a_learner_has_no_vote() -> None:
    team = _team(listing(running(), member(0), member(1), unstarted(2, 9)))
    assert (team.votes, [seat.id for seat in team.learners], team.crowded) == (2, ["9"], True)


def test_nobody_counts_upon_strangers() -> None:
    voter = replace(OTHER, is_learner=False)
    seen = listing(running(), member(0), member(1), member(2), voter)
    assert (_team(seen).votes, _team(seen).unwell) == (4, [stranger_name(voter)])
    learner = _team(listing(seen, member(0), member(1), member(2), OTHER))
    assert (learner.votes, learner.unwell, learner.crowded) == (3, [], True)


def test_a_predecessor_in_the_same_pod_does_not_speak_for_a_member() -> None:
    seen = listing(running(), member(0), member(1), unstarted(2, 9))
    before = _team(seen).learners[0]  # the answer is still that of member 3
    assert (before.answers, before.serves) == (False, False)
    after = _team(answering(seen, {2: answer(9, learner=True)})).learners[0]
    assert (after.answers, after.serves) == (True, True)


def test_who_serves_is_not_lost_whatever_was_said_before() -> None:
    seen = running()
    pods = (*seen.pods[:2], pod(2, crashed=True, last_words=GONE))
    assert _team(replace(seen, pods=pods)).seats[2].lost == ""
    assert _team(without(seen, 2, crashed=True, last_words=GONE)).seats[2].lost == "its data is gone"
    assert _team(without(seen, 2, deleting=True, node=Node.GONE)).seats[2].lost == "its node is gone"


def test_crashes_count_only_if_the_others_run_with_the_same_settings() -> None:
    crashing = {"crashed": True, "restarts": 9}
    assert "crashed 10 times" in _team(without(running(), 2, **crashing)).seats[2].lost
    assert _team(without(running(), 2, **crashing, template_hash="new")).seats[2].lost == ""
