"""Replacing members that are permanently lost, and only those."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    AddLearner,
    RemoveMember,
    ReplaceMember,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Ref

from .builders import (
    UNMANAGED,
    action_of,
    change,
    down,
    listing,
    member,
    next_change,
    running,
    with_claim,
    with_pod,
)

DATA_GONE = {"crashed": True, "log_tail": "cannot fetch cluster info from peer urls"}


def test_lost_voter_is_replaced() -> None:
    plan = change(down(running(), 1, **DATA_GONE))
    action = action_of(plan, ReplaceMember)
    assert (plan.phase, plan.reason) == (Phase.REPAIRING, Reason.REPLACING_MEMBER)
    assert (action.member_id, action.pod) == ("2", "e-1")
    assert (action.delete_claims, action.delete_pods) == ((Ref("data-e-1", "claim-1"),), (Ref("e-1", "pod-1"),))
    assert plan.message == "Replacing e-1: its data is gone."


@pytest.mark.parametrize("healthy", [False, True])
def test_member_whose_pvc_and_pod_are_being_deleted_is_not_waited_for(healthy: bool) -> None:
    deleting = with_claim(running() if healthy else down(running(), 1), 1, deleting=True)
    assert next_change(deleting) is None  # its pod uses the PVC
    plan = change(with_pod(deleting, 1, deleting=True))
    action = action_of(plan, ReplaceMember)
    assert (plan.phase, action.member_id, action.pod) == (Phase.REPAIRING, "2", "e-1")
    assert (action.delete_claims, action.delete_pods) == ((), (Ref("e-1", "pod-1"),))
    assert plan.message == "Replacing e-1: its PVC is being deleted."


def test_healthy_member_is_not_replaced_while_another_is_down() -> None:
    deleting = with_pod(with_claim(running(range(5), replicas=5), 1, deleting=True), 1, deleting=True)
    assert isinstance(change(deleting, size=5).action, ReplaceMember)
    assert next_change(down(deleting, 2), size=5) is None


def test_last_voter_is_never_removed() -> None:
    alone = with_pod(with_claim(running(range(1), replicas=1), 0, deleting=True), 0, deleting=True)
    assert next_change(alone, size=1) is None


def test_lost_voter_is_not_removed_without_a_quorum_of_the_others() -> None:
    lost = down(running(range(2), replicas=2), 1, **DATA_GONE)
    assert isinstance(change(lost, size=2).action, ReplaceMember)
    assert next_change(with_pod(lost, 0, deleting=True), size=2) is None


@pytest.mark.parametrize(
    "changes", [{}, {"crashed": True}, {"deleting": True}, {"problem": "ImagePullBackOff"}], ids=str
)
def test_member_that_may_come_back_is_not_replaced(changes: dict[str, Any]) -> None:
    assert next_change(down(running(), 1, **changes)) is None


def test_lost_voter_that_is_no_longer_wanted_is_only_removed() -> None:
    plan = change(down(running(), 2, **DATA_GONE), size=2)
    action = action_of(plan, RemoveMember)
    assert (plan.phase, action.member_id, action.delete_claims) == (
        Phase.SCALING,
        "3",
        (Ref("data-e-2", "claim-2"),),
    )


@pytest.mark.parametrize("unmanaged", [False, True])
def test_lost_voter_is_only_removed_while_no_member_may_join(unmanaged: bool) -> None:
    observed = running(range(5), replicas=5)
    observed = listing(observed, *map(member, range(5)), UNMANAGED) if unmanaged else down(observed, 3)
    plan = change(down(observed, 1, **DATA_GONE), size=5)
    action = action_of(plan, RemoveMember)
    assert (plan.phase, action.member_id, action.delete_claims) == (Phase.REPAIRING, "2", ())


def test_member_that_someone_else_removed_is_added_again() -> None:
    observed = listing(running(), member(0), member(2))
    plan = change(down(observed, 1, crashed=True, log_tail="the member has been permanently removed"))
    action = action_of(plan, AddLearner)
    assert (plan.phase, plan.reason, action.pod) == (Phase.REPAIRING, Reason.REPLACING_MEMBER, "e-1")
    assert (action.delete_claims, action.delete_pods) == ((Ref("data-e-1", "claim-1"),), (Ref("e-1", "pod-1"),))


def test_repair_comes_before_everything_else() -> None:
    plan = change(down(running(), 1, **DATA_GONE), size=5, version="3.6.17", options={"snapshotCount": 5000})
    assert isinstance(plan.action, ReplaceMember)
