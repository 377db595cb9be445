from __future__ import annotations

from dataclasses import replace

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.membership import (
    Membership,
    display,
    membership_of,
    ordinal_of,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import NodeState, Observation

from .builders import (
    CLUSTER,
    UNMANAGED,
    answer,
    answering,
    down,
    listing,
    member,
    running,
    unstarted,
    with_pod,
    without_object,
    without_quorum,
)

DATA_GONE = "cannot fetch cluster info from peer urls"


def _membership(observed: Observation) -> Membership:
    found = membership_of(CLUSTER, observed)
    assert found
    return found


def test_membership_is_unknown_without_quorum() -> None:
    assert membership_of(CLUSTER, without_quorum(running())) is None
    unhealthy = answering(running(), {number: answer(number + 1, error="no leader") for number in range(3)})
    assert unhealthy.view.members  # their own views, which no quorum confirms
    assert membership_of(CLUSTER, unhealthy) is None


def test_ordinal_follows_from_the_peer_url() -> None:
    assert ordinal_of(CLUSTER, member(2, name="")) == 2
    assert ordinal_of(CLUSTER, member(12)) == 12
    assert ordinal_of(CLUSTER, UNMANAGED) is None
    assert ordinal_of(CLUSTER, member(1, peer_urls=("https://e-1.e-peers.another.svc:2380",))) is None
    assert ordinal_of(CLUSTER, member(1, peer_urls=("https://e-01.e-peers.default.svc:2380",))) is None


def test_healthy_cluster_has_three_dependable_voters() -> None:
    members = _membership(running())
    assert [(slot.name, slot.id, slot.dependable, slot.lost, slot.leads) for slot in members.voters] == [
        ("e-0", "1", True, "", True),
        ("e-1", "2", True, "", False),
        ("e-2", "3", True, "", False),
    ]
    assert (members.votes, members.undependable, members.learners) == (3, [], [])
    assert (members.has_learner, members.ordinals) == (False, [0, 1, 2])


def test_pod_without_a_member_has_a_slot() -> None:
    members = _membership(listing(running(), member(0), member(2)))
    assert [(slot.name, slot.id) for slot in members.slots] == [("e-0", "1"), ("e-1", ""), ("e-2", "3")]
    assert (members.ordinals, members.votes) == ([0, 2], 2)


def test_learner_has_no_vote() -> None:
    members = _membership(listing(running(), member(0), member(1), unstarted(2, 9)))
    assert (members.votes, [slot.id for slot in members.learners], members.has_learner) == (2, ["9"], True)


def test_unmanaged_voter_is_not_dependable() -> None:
    voter = replace(UNMANAGED, is_learner=False)
    members = _membership(listing(running(), member(0), member(1), member(2), voter))
    assert (members.votes, members.undependable) == (4, [display(voter)])
    members = _membership(listing(running(), member(0), member(1), member(2), UNMANAGED))
    assert (members.votes, members.undependable, members.has_learner) == (3, [], True)


def test_answer_of_the_former_member_in_a_pod_does_not_count_for_the_new_one() -> None:
    observed = listing(running(), member(0), member(1), unstarted(2, 9))
    before = _membership(observed).learners[0]  # the answer is still that of member 3
    assert (before.answers, before.healthy, before.dependable) == (False, False, False)
    after = _membership(answering(observed, {2: answer(9, learner=True)})).learners[0]
    assert (after.answers, after.healthy, after.dependable) == (True, True, True)


def test_member_whose_pod_is_being_deleted_is_healthy_but_not_dependable() -> None:
    slot = _membership(with_pod(running(), 1, deleting=True)).slots[1]
    assert (slot.healthy, slot.dependable) == (True, False)


def test_healthy_member_is_not_lost_whatever_its_former_log_says() -> None:
    observed = running()
    crashed = {"crashed": True, "log_tail": DATA_GONE}
    assert _membership(with_pod(observed, 2, **crashed)).slots[2].lost == ""
    assert _membership(down(observed, 2, **crashed)).slots[2].lost == "its data is gone"
    unreachable = down(observed, 2, deleting=True, node=NodeState.UNREACHABLE)
    assert _membership(unreachable).slots[2].lost == "its node is unreachable"


def test_crashes_count_only_if_others_are_healthy_with_the_same_settings() -> None:
    crashing = {"crashed": True, "restarts": 9}
    assert "crashed 10 times" in _membership(down(running(), 2, **crashing)).slots[2].lost
    assert _membership(down(running(), 2, **crashing, template_hash="new")).slots[2].lost == ""
    # Without its configuration file no member can start.
    assert _membership(without_object(down(running(), 2, **crashing), "ConfigMap")).slots[2].lost == ""


def test_problem_of_a_slot_names_the_cause() -> None:
    observed = down(running(), 1, problem="ImagePullBackOff")
    assert _membership(observed).slots[1].problem == "ImagePullBackOff"
    assert "connection refused" in _membership(down(running(), 1)).slots[1].problem
    gone = replace(observed, pods=(observed.pods[0], observed.pods[2]))
    assert _membership(gone).slots[1].problem == "it has no pod"
