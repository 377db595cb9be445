"""Which change comes next. That every order of them is safe is proved in tests/simulation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import scaling as members
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Answer, Claim, Join, Observed
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Plan, Step
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.slots import gather
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member

from .clusters import CLUSTER, NOW, OTHER, answer, answering, listing, member, running, unstarted, without

GONE = {"crashed": True, "last_words": "cannot fetch cluster info from peer urls"}


def _change(seen: Observed, size: int = 3, generation: int = 1) -> Plan | None:
    cluster = replace(CLUSTER, size=size, generation=generation)
    team = gather(cluster, seen)
    assert team
    return members.change(cluster, seen, team)


def _planned(seen: Observed, size: int = 3) -> Plan:
    plan = _change(seen, size)
    assert plan
    return plan


def _learning(learner: Member, told: Answer | None = None) -> Observed:
    """Three voters, and a learner in the fourth place with its pod and file."""
    seen = listing(running(range(4), replicas=4, opened=[3]), *map(member, range(3)), learner)
    return answering(seen, {3: told}) if told else without(seen, 3)


def _with_claim_deleting(seen: Observed, number: int) -> Observed:
    name = f"data-{CLUSTER.pod_name(number)}"
    return replace(seen, claims=tuple(replace(each, deleting=each.name == name) for each in seen.claims))


def _with_pod(seen: Observed, number: int, *, deleting: bool) -> Observed:
    name = CLUSTER.pod_name(number)
    pods = tuple(replace(each, deleting=deleting) if each.name == name else each for each in seen.pods)
    return replace(seen, pods=pods)


def _kinds(plan: Plan) -> list[str]:
    return [manifest["kind"] for manifest in plan.apply]


def test_nothing_is_to_be_done() -> None:
    assert _change(running()) is None


def test_a_member_joins() -> None:
    plan = _planned(running(), size=5)
    assert (plan.phase, plan.reason, plan.step, plan.add, plan.remove) == (
        Phase.SCALING,
        "AddingMember",
        Step.JOIN,
        "e-3",
        "",
    )
    assert _kinds(plan) == ["ConfigMap", "PodDisruptionBudget", "StatefulSet"]
    assert (plan.delete_claims, plan.delete_pods) == ((), ())


def test_a_former_member_s_claim_is_in_the_way_and_a_foreign_one_is_a_refusal() -> None:
    seen = running()
    ours = replace(seen, claims=(*seen.claims, Claim("data-e-3", CLUSTER.uid)))
    assert _planned(ours, size=4).delete_claims == ("data-e-3",)
    foreign = replace(seen, claims=(*seen.claims, Claim("data-e-3", "another")))
    plan = _planned(foreign, size=4)
    assert (plan.phase, plan.reason, plan.step, plan.delete_claims) == (
        Phase.UNSUPPORTED,
        "ForeignData",
        Step.IDLE,
        (),
    )


def test_a_learner_is_waited_for_and_then_promoted() -> None:
    started = member(3, 9, is_learner=True)
    waiting = _planned(_learning(unstarted(3, 9)), size=4)
    assert (waiting.step, waiting.reason) == (Step.IDLE, "WaitingForLearner")
    behind = _planned(_learning(started, answer(9, 50, learner=True)), size=4)
    assert (behind.step, behind.promote, _kinds(behind)) == (Step.UPDATE, "", ["ConfigMap"])  # sealed all the same
    plan = _planned(_learning(started, answer(9, 95, learner=True)), size=4)
    assert (plan.step, plan.promote, _kinds(plan)) == (Step.PROMOTE, "9", ["ConfigMap"])


def test_nobody_is_promoted_or_added_while_a_voter_is_down() -> None:
    seen = _learning(member(3, 9, is_learner=True), answer(9, learner=True))
    assert _planned(without(seen, 1), size=4).promote == ""
    assert _change(without(running(), 1), size=5) is None
    assert _change(without(running(), 1), size=1) is None


def test_a_member_leaves_the_highest_first() -> None:
    plan = _planned(running(range(5), replicas=5))
    assert (plan.step, plan.remove, plan.delete_claims) == (Step.LEAVE, "5", ("data-e-4",))
    assert plan.apply[-1]["spec"]["replicas"] == 4


def test_a_lost_voter_is_replaced() -> None:
    plan = _planned(without(running(), 1, **GONE))
    assert (plan.phase, plan.reason, plan.step) == (Phase.REPAIRING, "ReplacingMember", Step.JOIN)
    assert (plan.remove, plan.add, plan.delete_claims, plan.delete_pods) == ("2", "e-1", ("data-e-1",), ("e-1",))
    assert plan.message == "Replacing e-1: its data is gone."


@pytest.mark.parametrize("serves", [False, True])
def test_one_whose_disk_is_being_deleted_with_its_pod_needs_not_be_waited_for(serves: bool) -> None:
    seen = running() if serves else without(running(), 1)
    going = _with_claim_deleting(seen, 1)
    assert _change(going) is None  # its pod holds the disk
    plan = _planned(_with_pod(going, 1, deleting=True))
    assert (plan.phase, plan.step, plan.remove, plan.add) == (Phase.REPAIRING, Step.JOIN, "2", "e-1")
    assert (plan.delete_claims, plan.delete_pods) == ((), ("e-1",))
    assert plan.message == "Replacing e-1: its disk is being deleted."


def test_the_last_voter_is_never_removed() -> None:
    alone = _with_pod(_with_claim_deleting(running(range(1), replicas=1), 0), 0, deleting=True)
    assert _change(alone, size=1) is None


def test_a_new_learner_waits_for_its_predecessor_s_disk_to_go() -> None:
    seen = listing(running(opened=[1]), member(0), member(2), unstarted(1, 9))
    seen = _with_claim_deleting(without(seen, 1, scheduled=False, ready=False), 1)
    assert _planned(seen).delete_pods == ()


def test_one_that_may_come_back_is_not_replaced() -> None:
    for changes in ({}, {"crashed": True}, {"deleting": True}, {"problem": "ImagePullBackOff"}):
        assert _change(without(running(), 1, **changes)) is None


def test_a_lost_voter_that_is_not_wanted_any_more_just_goes() -> None:
    plan = _planned(without(running(), 2, **GONE), size=2)
    assert (plan.step, plan.remove, plan.add, plan.delete_claims) == (Step.LEAVE, "3", "", ("data-e-2",))


@pytest.mark.parametrize("stranger", [False, True])
def test_while_nobody_may_join_the_lost_one_just_goes(stranger: bool) -> None:
    seen = running(range(5), replicas=5)
    seen = listing(seen, *map(member, range(5)), OTHER) if stranger else without(seen, 3)
    plan = _planned(without(seen, 1, **GONE), size=5)
    assert (plan.phase, plan.step, plan.remove, plan.add) == (Phase.REPAIRING, Step.LEAVE, "2", "")
    assert (plan.delete_claims, plan.delete_pods) == ((), ())


def test_a_member_that_was_removed_behind_our_back_is_added_anew() -> None:
    seen = listing(running(), member(0), member(2))
    plan = _planned(without(seen, 1, crashed=True, last_words="the member has been permanently removed"))
    assert (plan.phase, plan.step, plan.add, plan.remove) == (Phase.REPAIRING, Step.JOIN, "e-1", "")
    assert (plan.delete_claims, plan.delete_pods) == (("data-e-1",), ("e-1",))


def test_a_learner_that_loses_its_data_needs_a_new_id() -> None:
    plan = _planned(without(_learning(member(3, 9, is_learner=True)), 3, **GONE), size=4)
    assert (plan.step, plan.remove, plan.add) == (Step.JOIN, "9", "e-3")


def test_a_learner_that_is_not_wanted_any_more_is_taken_back() -> None:
    plan = _planned(_learning(unstarted(3, 9)))
    assert (plan.step, plan.remove, plan.delete_claims) == (Step.LEAVE, "9", ("data-e-3",))


def test_a_learner_that_does_not_catch_up_is_taken_back_and_tried_again_later() -> None:
    late = replace(_learning(unstarted(3, 9)), join=Join("9", NOW - members.PATIENCE - timedelta(seconds=1)))
    plan = _planned(late, size=4)
    assert (plan.phase, plan.reason, plan.step, plan.remove) == (Phase.DEGRADED, "JoinFailed", Step.LEAVE, "9")
    cluster = replace(CLUSTER, size=4)
    noted = members.join_of(cluster, late, gather(cluster, late), plan)
    assert noted == Join("9", NOW, failed=True, generation=1)

    after = replace(running(), join=noted)
    waiting = _planned(after, size=4)
    assert (waiting.reason, waiting.step) == ("JoinFailed", Step.IDLE)
    assert members.join_of(cluster, after, gather(cluster, after), waiting) == noted
    assert _planned(replace(after, now=NOW + members.PATIENCE), size=4).step is Step.JOIN
    edited = _change(after, size=4, generation=2)
    assert edited
    assert edited.step is Step.JOIN


def test_when_a_learner_came_is_remembered() -> None:
    cluster, seen = replace(CLUSTER, size=4), _learning(unstarted(3, 9))
    team, plan = gather(cluster, seen), _planned(seen, size=4)
    first = members.join_of(cluster, seen, team, plan)
    assert first == Join("9", NOW)
    later = replace(seen, now=NOW + timedelta(minutes=1), join=first)
    assert members.join_of(cluster, later, team, plan) == first
    assert members.join_of(cluster, later, None, plan) == first  # nobody tells just now
    assert members.join_of(cluster, replace(running(), join=first), gather(cluster, running()), plan) is None


def test_with_a_stranger_who_votes_the_size_is_left_alone() -> None:
    seen = listing(running(), *map(member, range(3)), replace(OTHER, is_learner=False))
    assert _change(seen, size=5) is None
    assert _change(seen, size=1) is None


def test_what_a_crash_left_is_tidied_up() -> None:
    seen = running()
    seen = replace(seen, claims=(*seen.claims, Claim("data-e-3", CLUSTER.uid), Claim("data-e-4", "another")))
    plan = _planned(seen)
    assert (plan.reason, plan.step, plan.delete_claims) == ("TidyingUp", Step.UPDATE, ("data-e-3",))


def test_a_pod_that_was_there_before_its_learner_starts_afresh() -> None:
    """It has the data of a member that was removed."""
    removed = {"crashed": True, "last_words": "the member has been permanently removed from the cluster"}
    seen = replace(_learning(unstarted(3, 9)), phase=Phase.REPAIRING)
    plan = _planned(without(seen, 3, **removed), size=4)
    assert (plan.phase, plan.step, plan.apply) == (Phase.REPAIRING, Step.UPDATE, ())
    assert (plan.delete_claims, plan.delete_pods) == (("data-e-3",), ("e-3",))


def test_nobody_leaves_or_joins_while_a_voter_is_about_to_go_though_it_still_serves() -> None:
    """A pod that is deleted serves for another second."""
    going = _with_pod(running(), 0, deleting=True)
    for size in (2, 5):
        plan = _change(going, size=size)
        assert plan is None or not (plan.add or plan.remove)
        assert (_planned(running(), size=size).add or _planned(running(), size=size).remove) != ""


def test_a_learner_does_not_vote_while_a_voter_is_about_to_go() -> None:
    learning = _learning(member(3, is_learner=True), answer(4, learner=True))
    assert _planned(learning, size=4).step is Step.PROMOTE
    assert _planned(_with_pod(learning, 0, deleting=True), size=4).step is not Step.PROMOTE
