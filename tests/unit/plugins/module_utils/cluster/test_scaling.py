"""Growing, shrinking and cleaning up. That every order of changes is safe is shown in tests/simulation."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    AddLearner,
    RemoveMember,
    UpdateObjects,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Ref

from .builders import (
    UNMANAGED,
    action_of,
    change,
    claim,
    down,
    kinds_of,
    listing,
    member,
    next_change,
    object_of,
    running,
    with_claims,
    with_pod,
)


def test_nothing_changes_at_the_wanted_size() -> None:
    assert next_change(running()) is None


def test_member_joins_as_a_learner() -> None:
    plan = change(running(), size=5)
    action = action_of(plan, AddLearner)
    assert (plan.phase, plan.reason, action.pod) == (Phase.SCALING, Reason.ADDING_MEMBER, "e-3")
    assert kinds_of(plan) == ["ConfigMap", "PodDisruptionBudget", "StatefulSet"]
    assert (action.delete_claims, action.delete_pods) == ((), ())


def test_own_claim_of_a_former_member_is_deleted_and_a_foreign_one_is_refused() -> None:
    own = with_claims(running(), claim(3))
    assert action_of(change(own, size=4), AddLearner).delete_claims == (Ref("data-e-3", "claim-3"),)
    foreign = with_claims(running(), claim(3, "another"))
    plan = change(foreign, size=4)
    assert (plan.phase, plan.reason, plan.action) == (Phase.UNSUPPORTED, Reason.FOREIGN_DATA, None)
    assert "data-e-3" in plan.message


def test_no_member_joins_or_leaves_while_a_voter_is_down() -> None:
    assert next_change(down(running(), 1), size=5) is None
    assert next_change(down(running(), 1), size=1) is None


def test_no_member_joins_or_leaves_while_the_pod_of_a_voter_is_being_deleted() -> None:
    """Its member is healthy for another second."""
    stopping = with_pod(running(), 0, deleting=True)
    assert next_change(stopping, size=5) is None
    assert next_change(stopping, size=2) is None
    assert isinstance(change(running(), size=5).action, AddLearner)
    assert isinstance(change(running(), size=2).action, RemoveMember)


def test_highest_member_leaves_first() -> None:
    plan = change(running(range(5), replicas=5))
    action = action_of(plan, RemoveMember)
    assert (plan.phase, plan.reason) == (Phase.SCALING, Reason.REMOVING_MEMBER)
    assert (action.member_id, action.delete_claims) == ("5", (Ref("data-e-4", "claim-4"),))
    assert object_of(plan, "StatefulSet")["spec"]["replicas"] == 4


def test_size_is_left_alone_with_an_unmanaged_voter() -> None:
    observed = listing(running(), *map(member, range(3)), replace(UNMANAGED, is_learner=False))
    assert next_change(observed, size=5) is None
    assert next_change(observed, size=1) is None


def test_no_member_joins_while_an_unmanaged_learner_exists() -> None:
    assert next_change(listing(running(), *map(member, range(3)), UNMANAGED), size=5) is None


def test_claims_that_a_crash_left_behind_are_deleted() -> None:
    plan = change(with_claims(running(), claim(3), claim(4, "another")))
    action = action_of(plan, UpdateObjects)
    assert plan.reason is Reason.CLEANING_UP
    assert (action.delete_claims, action.delete_pods) == ((Ref("data-e-3", "claim-3"),), ())
