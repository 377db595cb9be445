"""A learner from the moment it is in the member list until it votes or is removed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import joining
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    AddLearner,
    CancelDowngrade,
    PromoteLearner,
    RemoveMember,
    ReplaceMember,
    UpdateObjects,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.memory import Join, recall
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import Answer
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan, Ref

from .builders import (
    CLUSTER,
    NOW,
    action_of,
    answer,
    answering,
    change,
    down,
    kinds_of,
    listing,
    member,
    planned,
    remembering,
    running,
    situation,
    unstarted,
    with_claim,
    with_pod,
    without_quorum,
)

FOUR = replace(CLUSTER, size=4)
DATA_GONE = {"crashed": True, "log_tail": "cannot fetch cluster info from peer urls"}
STARTED = member(3, 9, is_learner=True)


def _learning(learner: Member, told: Answer | None = None) -> Observation:
    """Three voters, and a learner in the fourth slot with its pod and its file."""
    observed = listing(running(range(4), replicas=4, opened=[3]), *map(member, range(3)), learner)
    return answering(observed, {3: told}) if told else down(observed, 3)


def _join_of(observed: Observation, plan: Plan) -> Join | None:
    return joining.join_of(situation(FOUR, observed), plan)


def test_learner_is_waited_for_and_then_promoted() -> None:
    waiting = change(_learning(unstarted(3, 9)), size=4)
    assert (waiting.action, waiting.reason) == (None, Reason.WAITING_FOR_LEARNER)
    behind = change(_learning(STARTED, answer(9, 50, learner=True)), size=4)
    assert isinstance(behind.action, UpdateObjects)  # its file is sealed all the same
    assert kinds_of(behind) == ["ConfigMap"]
    plan = change(_learning(STARTED, answer(9, 95, learner=True)), size=4)
    assert (plan.reason, action_of(plan, PromoteLearner).member_id) == (Reason.PROMOTING_MEMBER, "9")
    assert kinds_of(plan) == ["ConfigMap"]


def test_message_tells_how_far_a_learner_is() -> None:
    observed = _learning(STARTED, answer(9, 50, learner=True))
    sealed = change(observed, size=4)
    config_map = action_of(sealed, UpdateObjects).objects[0]
    observed = replace(observed, objects={**observed.objects, "ConfigMap/e-config": config_map})
    waiting = change(observed, size=4)
    assert waiting.message == "Waiting for learner e-3 to catch up (revision 50 of 100)."


def test_learner_is_not_promoted_while_a_voter_is_down() -> None:
    observed = _learning(STARTED, answer(9, learner=True))
    assert isinstance(change(observed, size=4).action, PromoteLearner)
    assert not isinstance(change(down(observed, 1), size=4).action, PromoteLearner)


def test_learner_is_not_promoted_while_the_pod_of_a_voter_is_being_deleted() -> None:
    observed = _learning(STARTED, answer(9, learner=True))
    assert not isinstance(change(with_pod(observed, 0, deleting=True), size=4).action, PromoteLearner)


def test_learner_waits_for_the_pvc_of_its_predecessor_to_be_deleted() -> None:
    observed = listing(running(opened=[1]), member(0), member(2), unstarted(1, 9))
    observed = with_claim(down(observed, 1, scheduled=False, ready=False), 1, deleting=True)
    plan = change(observed)
    assert (plan.reason, plan.action) == (Reason.WAITING_FOR_LEARNER, None)


def test_learner_that_lost_its_data_gets_a_new_id() -> None:
    plan = change(down(_learning(STARTED), 3, **DATA_GONE), size=4)
    action = action_of(plan, ReplaceMember)
    assert (action.member_id, action.pod) == ("9", "e-3")


def test_learner_that_lost_its_data_is_only_removed_while_a_voter_is_down() -> None:
    plan = change(down(down(_learning(STARTED), 3, **DATA_GONE), 1), size=4)
    action = action_of(plan, RemoveMember)
    assert (plan.reason, action.member_id, action.delete_claims) == (Reason.REMOVING_MEMBER, "9", ())


def test_learner_that_is_no_longer_wanted_is_removed() -> None:
    plan = change(_learning(unstarted(3, 9)))
    action = action_of(plan, RemoveMember)
    assert (plan.phase, action.member_id) == (Phase.SCALING, "9")
    assert action.delete_claims == (Ref("data-e-3", "claim-3"),)


def test_learner_that_does_not_catch_up_is_removed_and_tried_again_later() -> None:
    since = NOW - joining.PATIENCE - timedelta(seconds=1)
    late = remembering(_learning(unstarted(3, 9)), join=Join("9", since))
    plan = planned(FOUR, late)
    action = action_of(plan, RemoveMember)
    assert (plan.phase, plan.reason, action.member_id) == (Phase.DEGRADED, Reason.JOIN_FAILED, "9")
    assert action.delete_claims == ()
    failed = recall(plan.record).join
    assert failed == _join_of(late, plan) == Join("9", NOW, failed=True, generation=1)

    after = remembering(running(), join=failed)
    waiting = change(after, size=4)
    assert (waiting.reason, waiting.action) == (Reason.JOIN_FAILED, None)
    assert _join_of(after, waiting) == failed
    assert isinstance(change(replace(after, now=NOW + joining.PATIENCE), size=4).action, AddLearner)
    assert isinstance(change(after, size=4, generation=2).action, AddLearner)  # the spec was edited


def test_time_of_a_join_is_remembered() -> None:
    observed = _learning(unstarted(3, 9))
    plan = planned(FOUR, observed)
    first = recall(plan.record).join
    assert first == _join_of(observed, plan) == Join("9", NOW)
    later = remembering(replace(observed, now=NOW + timedelta(minutes=1)), join=first)
    assert _join_of(later, plan) == first
    assert _join_of(without_quorum(later), plan) == first  # no quorum reports the members at this moment
    assert _join_of(remembering(running(), join=first), plan) is None
    assert planned(CLUSTER, remembering(running(), join=first)).record["join"] is None


def test_pod_that_existed_before_its_learner_starts_with_an_empty_volume() -> None:
    """It has the data of a member that was removed."""
    removed = {"crashed": True, "log_tail": "the member has been permanently removed from the cluster"}
    observed = remembering(_learning(unstarted(3, 9)), phase=Phase.REPAIRING)
    plan = change(down(observed, 3, **removed), size=4)
    action = action_of(plan, UpdateObjects)
    assert (plan.phase, action.objects) == (Phase.REPAIRING, ())
    assert (action.delete_claims, action.delete_pods) == ((Ref("data-e-3", "claim-3"),), (Ref("e-3", "pod-3"),))


def test_pod_of_a_learner_that_can_not_start_is_recreated_after_the_spec_was_corrected() -> None:
    stuck = down(_learning(unstarted(3, 9)), 3, problem="ImagePullBackOff")
    assert change(stuck, size=4).action is None
    plan = change(with_pod(stuck, 3, template_hash="old"), size=4)
    action = action_of(plan, UpdateObjects)
    assert (action.objects, action.delete_claims, action.stuck_pods) == ((), (), (Ref("e-3", "pod-3"),))


def test_pod_of_a_learner_does_not_wait_for_ever_for_a_pvc_that_is_being_deleted() -> None:
    """Seen with a StatefulSet that recreated the pod before the PVC of the former member was gone."""
    observed = with_claim(_learning(unstarted(3, 9)), 3, deleting=True)
    told = "Deleting pod e-3, in which etcd does not run: its PVC is being deleted."
    for changes in ({"started": False}, {"started": True, "crashed": True}):
        plan = change(with_pod(observed, 3, **changes), size=4)
        assert [ref.name for ref in action_of(plan, UpdateObjects).stuck_pods] == ["e-3"]
        assert plan.message == told
    for changes in ({"started": True}, {"started": False, "deleting": True}):
        assert change(with_pod(observed, 3, **changes), size=4).message != told


def test_downgrade_is_cancelled_for_a_learner_that_can_not_start_because_of_it() -> None:
    """etcd demands a cluster version one above the new member's, also when that has been lowered already."""
    learning = _learning(unstarted(3, 9))
    pending = answering(learning, {number: answer(number + 1, downgrade="3.6.0") for number in range(3)})
    plan = change(pending, size=4)
    assert plan.action == CancelDowngrade()
    assert plan.reason is Reason.CANCELLING_DOWNGRADE
    started = listing(pending, *map(member, range(3)), STARTED)
    assert change(started, size=4).action != CancelDowngrade()
