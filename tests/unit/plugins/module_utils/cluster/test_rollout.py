"""Rollouts: one member at a time, followers first, and no restart while another member is not healthy."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, Storage
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    AddLearner,
    ReplaceMember,
    RestartMember,
    UpdateObjects,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import NodeState, Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan, Ref

from .builders import (
    CLUSTER,
    NOW,
    OPTIONS,
    UNMANAGED,
    action_of,
    answer,
    answering,
    applied,
    down,
    listing,
    member,
    planned,
    recorded,
    remembering,
    rendered,
    running,
    template_hash,
    with_pod,
    without_answer,
)

OTHER = replace(CLUSTER, options={**OPTIONS, "snapshotCount": 5000}, generation=2)


def changed(cluster: Cluster, observed: Observation) -> Observation:
    """After the objects were brought to what the spec asks for."""
    plan = planned(cluster, observed)
    assert plan.reason is Reason.CHANGING_SETTINGS
    assert isinstance(plan.action, UpdateObjects)
    return recorded(applied(observed, plan), plan)


def restarted(cluster: Cluster, observed: Observation, number: int, *, healthy: bool = True) -> Observation:
    """After a pod was recreated as the StatefulSet makes it now."""
    made = {"template_hash": template_hash(cluster), "version": cluster.version, "created": NOW}
    observed = with_pod(observed, number, **made)
    if not healthy:
        return without_answer(observed, number)
    return answering(observed, {number: answer(number + 1, version=cluster.version, cluster_version="3.6.0")})


def restarts(plan: Plan) -> str:
    """The pod that restarts; "" for none."""
    return plan.action.pod.name if isinstance(plan.action, RestartMember) else ""


def test_leader_is_restarted_last() -> None:
    observed, order = changed(OTHER, running()), []
    for _ in range(3):
        plan = planned(OTHER, observed)
        action = action_of(plan, RestartMember)
        assert (plan.phase, plan.reason) == (Phase.RESTARTING, Reason.RESTARTING_MEMBER)
        order.append((action.pod.name, action.transferee))
        observed = restarted(OTHER, observed, CLUSTER.ordinal(action.pod.name) or 0)
    assert order == [("e-2", ""), ("e-1", ""), ("e-0", "2")]  # e-0 led, and an updated member leads now
    done = planned(OTHER, observed)
    assert (done.phase, done.action) == (Phase.RUNNING, None)


def test_restart_is_of_exactly_the_pod_that_was_observed() -> None:
    assert action_of(planned(OTHER, changed(OTHER, running())), RestartMember).pod == Ref("e-2", "pod-2")


def test_no_member_restarts_while_another_is_not_healthy() -> None:
    observed = restarted(OTHER, changed(OTHER, running()), 2, healthy=False)
    waiting = planned(OTHER, observed)
    assert (waiting.phase, waiting.action, waiting.reason) == (Phase.RESTARTING, None, Reason.WAITING_FOR_MEMBER)
    stopped = planned(OTHER, replace(observed, now=NOW + timedelta(minutes=3)))
    assert (stopped.action, stopped.reason) == (None, Reason.ROLLOUT_STOPPED)
    assert "e-2 did not become healthy" in stopped.message


def test_member_is_done_when_it_is_healthy_again() -> None:
    observed = changed(OTHER, running())
    assert "0 of 3 done" in planned(OTHER, observed).message
    for waiting in (with_pod(observed, 2, deleting=True), restarted(OTHER, observed, 2, healthy=False)):
        plan = planned(OTHER, waiting)
        assert (plan.reason, "0 of 3 done" in plan.message) == (Reason.WAITING_FOR_MEMBER, True)
    observed = restarted(OTHER, observed, 2)
    assert "1 of 3 done" in planned(OTHER, observed).message
    plan = planned(OTHER, restarted(OTHER, observed, 1, healthy=False))
    assert (plan.reason, "1 of 3 done" in plan.message) == (Reason.WAITING_FOR_MEMBER, True)


def test_size_edited_during_a_rollout_is_not_reported_as_new_settings() -> None:
    observed = restarted(OTHER, changed(OTHER, running()), 2)
    larger = replace(OTHER, size=5, generation=3)
    plan = planned(larger, observed)
    assert (plan.phase, plan.reason) == (Phase.RESTARTING, Reason.UPDATING_OBJECTS)
    assert "PodDisruptionBudget e" in plan.message
    assert "1 of 3 done. spec.size is 5." in plan.message
    assert restarts(planned(larger, recorded(applied(observed, plan), plan))) == "e-1"


def test_problem_that_the_kubelet_reports_stops_a_rollout_sooner_than_silence() -> None:
    observed = restarted(OTHER, changed(OTHER, running()), 2, healthy=False)
    problem = "ErrImagePull: no such image"
    later = replace(with_pod(observed, 2, problem=problem), now=NOW + timedelta(seconds=20))
    assert planned(OTHER, replace(later, now=NOW + timedelta(seconds=5))).reason is Reason.WAITING_FOR_MEMBER
    stopped = planned(OTHER, later)
    assert stopped.reason is Reason.ROLLOUT_STOPPED
    assert problem in stopped.message
    assert planned(OTHER, with_pod(later, 2, scheduled=False)).reason is Reason.WAITING_FOR_MEMBER
    assert planned(OTHER, replace(observed, now=later.now)).reason is Reason.WAITING_FOR_MEMBER


def test_no_member_restarts_while_another_pod_is_being_deleted() -> None:
    observed = with_pod(changed(OTHER, running()), 1, deleting=True)
    plan = planned(OTHER, observed)
    assert (plan.action, plan.reason) == (None, Reason.WAITING_FOR_MEMBER)


def test_no_member_restarts_while_another_is_behind() -> None:
    observed = changed(OTHER, running())
    behind = answering(observed, {0: answer(1, 10_000), 1: answer(2, 10_000), 2: answer(3, 4_000)})
    assert restarts(planned(OTHER, behind)) == "e-2"  # the one that is behind itself
    behind = answering(behind, {2: answer(3, 10_000), 1: answer(2, 4_000)})
    plan = planned(OTHER, behind)
    assert (plan.reason, plan.action) == (Reason.WAITING_FOR_MEMBER, None)


def test_no_member_restarts_while_an_unmanaged_voter_exists() -> None:
    observed = listing(running(), *map(member, range(3)), replace(UNMANAGED, is_learner=False))
    plan = planned(OTHER, changed(OTHER, observed))
    assert (plan.reason, plan.action) == (Reason.WAITING_FOR_MEMBER, None)


def test_bad_change_is_rolled_back_where_it_was_made_first() -> None:
    observed = restarted(OTHER, changed(OTHER, running()), 2, healthy=False)
    observed = replace(down(observed, 2, problem="ImagePullBackOff"), now=NOW + timedelta(minutes=3))
    action = action_of(planned(CLUSTER, changed(CLUSTER, observed)), RestartMember)
    assert (action.pod.name, action.transferee) == ("e-2", "")


@pytest.mark.parametrize(
    ("node", "restart"), [(NodeState.UNREACHABLE, ""), (NodeState.GONE, ""), (NodeState.READY, "e-2")]
)
def test_silent_member_restarts_only_on_a_ready_node(node: NodeState, restart: str) -> None:
    observed = down(changed(OTHER, running()), 2, node=node)
    late = remembering(replace(observed, now=NOW + timedelta(minutes=5)), degraded_since=NOW)
    assert restarts(planned(OTHER, late)) == restart


def test_member_that_was_down_before_the_rollout_is_not_blamed_on_the_spec() -> None:
    observed = down(changed(OTHER, running()), 1, node=NodeState.UNREACHABLE)
    waiting = planned(OTHER, replace(observed, now=NOW + timedelta(minutes=5)))
    assert (waiting.action, waiting.reason) == (None, Reason.WAITING_FOR_MEMBER)
    assert "e-1" in waiting.message
    assert "spec" not in waiting.message


def test_one_missed_answer_is_no_reason_to_restart() -> None:
    observed = down(changed(OTHER, running()), 2, node=NodeState.READY)
    assert restarts(planned(OTHER, replace(observed, now=NOW + timedelta(minutes=5)))) == ""


def test_missing_member_is_added_before_any_restarts() -> None:
    observed = running(range(2), replicas=3)
    assert action_of(planned(OTHER, observed), AddLearner).pod == "e-2"


def _in_memory(observed: Observation) -> Observation:
    cluster = replace(CLUSTER, storage=Storage("Memory"))
    files = observed.objects["ConfigMap/e-config"]["data"]
    pods = tuple(replace(one, template_hash=template_hash(cluster)) for one in observed.pods)
    replicas = len(observed.pods)
    return replace(observed, objects=rendered(cluster, replicas, files, replicas), pods=pods, claims=())


def test_member_with_data_in_memory_is_replaced_instead_of_restarted() -> None:
    memory = replace(OTHER, storage=Storage("Memory"))
    plan = planned(memory, changed(memory, _in_memory(running())))
    action = action_of(plan, ReplaceMember)
    assert (plan.phase, plan.reason) == (Phase.RESTARTING, Reason.RESTARTING_MEMBER)
    assert (action.pod, action.member_id) == ("e-2", "3")


def test_only_member_with_data_in_memory_can_not_restart() -> None:
    memory = replace(OTHER, size=1, storage=Storage("Memory"))
    plan = planned(memory, changed(memory, _in_memory(running(range(1), replicas=1))))
    assert (plan.phase, plan.reason, plan.action) == (Phase.UNSUPPORTED, Reason.CANNOT_RESTART, None)
    assert "Set spec.size to 3 first." in plan.message


def test_rollout_stops_when_an_image_has_another_version_than_its_tag() -> None:
    upgraded = replace(CLUSTER, version="3.6.17", upgrade=replace(CLUSTER.upgrade, snapshot=False))
    observed = running()
    release = planned(upgraded, observed)
    observed = restarted(upgraded, recorded(applied(observed, release), release), 2)
    assert restarts(planned(upgraded, observed)) == "e-1"
    plan = planned(upgraded, answering(observed, {2: answer(3, version="3.6.15")}))
    assert (plan.reason, plan.action) == (Reason.ROLLOUT_STOPPED, None)
    assert "e-2 reports 3.6.15 although its image is tagged 3.6.17" in plan.message
