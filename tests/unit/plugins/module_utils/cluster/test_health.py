"""What is reported of the voters' health, and how soon the next look is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import status
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Certificates, NodeState
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import Unreachable
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import ClusterView
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import SETTLED

from .builders import (
    CLUSTER,
    NOW,
    UNMANAGED,
    answer,
    answering,
    down,
    listing,
    member,
    planned,
    pod,
    remembering,
    running,
    situation,
    with_pod,
    without_quorum,
)

OLD = NOW - timedelta(hours=1)


def test_healthy_cluster_is_looked_at_rarely() -> None:
    plan = planned(CLUSTER, running())
    assert (plan.phase, plan.reason, plan.message) == (
        Phase.RUNNING,
        Reason.ALL_HEALTHY,
        "All 3 members are healthy.",
    )
    assert plan.requeue == SETTLED


@pytest.mark.parametrize("changes", [{"deleting": True}, {"ready": False}], ids=str)
def test_healthy_member_whose_end_causes_no_event_is_looked_at_soon(changes: dict[str, Any]) -> None:
    """A member answers while its pod is being deleted: the event of that has come already, and no other will."""
    plan = planned(CLUSTER, with_pod(running(), 0, **changes))
    assert (plan.phase, plan.action) == (Phase.RUNNING, None)
    assert plan.requeue <= 5


def test_healthy_member_whose_pod_is_not_ready_is_looked_at_sooner_while_the_pod_is_young() -> None:
    """No event would come if that pod were deleted now: for the EndpointSlice nothing changes."""
    assert planned(CLUSTER, with_pod(running(), 2, ready=False)).requeue == 1
    assert planned(CLUSTER, with_pod(running(), 2, ready=False, created=OLD)).requeue == 5


def test_unhealthy_member_is_reported_with_its_problem() -> None:
    degraded = planned(CLUSTER, down(running(), 2, ready=False, problem="ImagePullBackOff: no such image"))
    assert (degraded.phase, degraded.reason, degraded.action) == (Phase.DEGRADED, Reason.MEMBERS_DOWN, None)
    assert "2 of 3 members are healthy; 2 are needed." in degraded.message
    assert "e-2: ImagePullBackOff: no such image." in degraded.message


def test_degraded_cluster_is_looked_at_less_often_after_two_minutes() -> None:
    degraded = down(running(), 2)
    assert planned(CLUSTER, degraded).requeue == 1
    assert planned(CLUSTER, remembering(degraded, unhealthy_since=NOW - timedelta(minutes=3))).requeue == 5


def test_lost_quorum_is_reported_and_nothing_is_changed() -> None:
    old = tuple(pod(number, created=OLD, ready=False) for number in range(3))
    urls = [CLUSTER.client_url(one.name) for one in old]
    refused = {url: Unreachable("connection refused", url) for url in urls}
    lost = planned(CLUSTER, replace(running(), pods=old, view=ClusterView(answers=refused)))
    assert (lost.phase, lost.reason, lost.action) == (Phase.QUORUM_LOST, Reason.QUORUM_LOST, None)
    assert "restore from a backup" in lost.message
    assert f"e-0: {urls[0]}: connection refused" in lost.message


def test_starting_pods_are_given_time() -> None:
    young = tuple(pod(number, ready=False) for number in range(3))
    plan = planned(CLUSTER, without_quorum(replace(running(), pods=young)))
    assert (plan.phase, plan.reason) == (Phase.STARTING, Reason.STARTING)


def test_members_that_answer_without_a_leader_are_given_time_to_elect_one() -> None:
    observed = replace(running(), pods=tuple(pod(number, created=OLD) for number in range(3)))
    observed = answering(observed, {number: answer(number + 1, error="no leader") for number in range(3)})
    plan = planned(CLUSTER, observed)
    assert (plan.phase, plan.reason) == (Phase.STARTING, Reason.NO_LEADER)
    for changes in ({"unavailable_since": NOW - timedelta(minutes=3)}, {"phase": "QuorumLost"}):
        assert planned(CLUSTER, remembering(observed, **changes)).phase is Phase.QUORUM_LOST


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.DEGRADED, Phase.SCALING, Phase.EXPANDING, Phase.REPAIRING])
def test_one_look_that_falls_into_an_election_does_not_change_the_phase(phase: Phase) -> None:
    """Nor does one that got no answer while the pods are ready. What is true at this moment is in the conditions."""
    observed = remembering(running(), phase=str(phase), unhealthy_since=OLD)
    for created in (OLD, NOW):
        pods = replace(observed, pods=tuple(pod(number, created=created) for number in range(3)))
        electing = answering(pods, {number: answer(number + 1, error="no leader") for number in range(3)})
        for seen, reason in ((electing, Reason.NO_LEADER), (without_quorum(pods), Reason.MISSED)):
            plan = planned(CLUSTER, seen)
            assert (plan.phase, plan.reason, plan.requeue) == (phase, reason, 1)
            found = status.status(situation(CLUSTER, seen), plan, {})
            assert {each["type"]: each["status"] for each in found["conditions"]}["Available"] != "True"
            since = NOW - timedelta(seconds=11)
            longer = remembering(seen, unavailable_since=since, unanswered_since=since)
            assert planned(CLUSTER, longer).phase in (Phase.STARTING, Phase.QUORUM_LOST)


def test_unready_pods_that_do_not_answer_are_not_excused() -> None:
    silent = without_quorum(remembering(running(), phase="Running"))
    old = replace(silent, pods=tuple(pod(number, created=OLD, ready=False) for number in range(3)))
    assert planned(CLUSTER, old).phase is Phase.QUORUM_LOST


@pytest.mark.parametrize("phase", [Phase.RESTARTING, Phase.UPGRADING])
def test_election_during_a_rollout_does_not_end_its_phase(phase: Phase) -> None:
    young = tuple(pod(number, ready=False) for number in range(3))
    electing = remembering(without_quorum(replace(running(), pods=young)), phase=str(phase))
    assert planned(CLUSTER, electing).phase is phase


def test_pods_that_are_starting_do_not_hide_the_loss_of_a_quorum_for_good() -> None:
    observed = without_quorum(running())
    lost: dict[str, Any] = {"deleting": True, "node": NodeState.UNREACHABLE}
    unreachable = with_pod(with_pod(observed, 0, **lost), 1, **lost)
    assert planned(CLUSTER, with_pod(unreachable, 0, node=NodeState.READY)).phase is Phase.STARTING
    plan = planned(CLUSTER, unreachable)
    assert plan.phase is Phase.QUORUM_LOST
    assert "e-0: its node is unreachable" in plan.message


def test_unmanaged_member_is_reported_and_left_alone() -> None:
    plan = planned(CLUSTER, listing(running(), *map(member, range(3)), UNMANAGED))
    assert (plan.phase, plan.reason, plan.action) == (Phase.RUNNING, Reason.UNMANAGED_MEMBER, None)
    assert "bad, http://other:2380" in plan.message


def test_invalid_secret_of_the_user_is_reported_although_every_member_is_healthy() -> None:
    plan = planned(CLUSTER, replace(running(), certificates=Certificates(problem="Secret own lacks tls.key.")))
    assert (plan.phase, plan.reason) == (Phase.RUNNING, Reason.CHANGE_PENDING)
    assert plan.message.endswith("Secret own lacks tls.key.")
