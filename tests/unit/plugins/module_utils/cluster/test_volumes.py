"""Larger volumes: what grows, what is waited for, and what can't grow."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, Storage
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import planner, volumes
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import ExpandVolumes
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Certificates, Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan, Ref

from .builders import (
    CLUSTER,
    action_of,
    applied,
    claim,
    nothing,
    planned,
    rendered,
    running,
    situation,
    with_claims,
    without_quorum,
)

LARGER = replace(CLUSTER, storage=Storage(size="2Gi"))


def _with_sizes(requested: str, capacity: str) -> Observation:
    observed = running()
    claims = tuple(replace(one, requested=requested, capacity=capacity) for one in observed.claims)
    return replace(observed, claims=claims)


def _expand(cluster: Cluster, observed: Observation) -> Plan:
    plan = volumes.expand(situation(cluster, observed))
    assert plan
    return plan


def test_claims_grow_and_their_stateful_set_is_made_again() -> None:
    plan = _expand(LARGER, _with_sizes("1Gi", "1Gi"))
    action = action_of(plan, ExpandVolumes)
    assert (plan.phase, plan.reason) == (Phase.EXPANDING, Reason.EXPANDING_VOLUMES)
    assert action.stateful_sets == (Ref("e", "set-1"),)
    assert [one["metadata"]["name"] for one in action.claims] == ["data-e-0", "data-e-1", "data-e-2"]
    assert {one["spec"]["resources"]["requests"]["storage"] for one in action.claims} == {"2Gi"}


def test_only_the_claims_of_this_cluster_grow() -> None:
    observed = with_claims(
        _with_sizes("1Gi", "1Gi"),
        claim(3, "another", requested="1Gi", capacity="1Gi"),
        claim(4, deleting=True, requested="1Gi", capacity="1Gi"),
    )
    names = [one["metadata"]["name"] for one in action_of(_expand(LARGER, observed), ExpandVolumes).claims]
    assert names == ["data-e-0", "data-e-1", "data-e-2"]


def test_expansion_that_the_storage_class_does_not_allow_is_refused_by_name() -> None:
    plan = _expand(LARGER, replace(_with_sizes("1Gi", "1Gi"), unexpandable=("rigid",)))
    assert (plan.phase, plan.reason, plan.action) == (Phase.UNSUPPORTED, Reason.EXPANSION_REFUSED, None)
    assert "StorageClass rigid does not allow it" in plan.message


def test_expansion_in_progress_is_waited_for() -> None:
    observed = _with_sizes("2Gi", "1Gi")
    made_again = replace(observed, objects=rendered(LARGER, 3, situation(LARGER, observed).files, 3))
    plan = _expand(LARGER, made_again)
    assert (plan.phase, plan.reason, plan.action) == (Phase.EXPANDING, Reason.WAITING_FOR_VOLUMES, None)
    assert "data-e-0 (1Gi of 2Gi)" in plan.message


def test_nothing_grows_that_is_large_enough() -> None:
    assert volumes.expand(situation(CLUSTER, _with_sizes("1Gi", "1Gi"))) is None
    assert volumes.expand(situation(CLUSTER, _with_sizes("2Gi", "2Gi"))) is None


def test_expansion_that_was_withdrawn_is_not_waited_for() -> None:
    """Kubernetes may try for ever; the request of a PVC can't be taken back."""
    assert volumes.expand(situation(CLUSTER, _with_sizes("2Gi", "1Gi"))) is None
    plan = planned(CLUSTER, _with_sizes("2Gi", "1Gi"))
    assert (plan.phase, plan.reason, plan.action) == (Phase.RUNNING, Reason.ALL_HEALTHY, None)
    assert "PVCs never shrink: data-e-0, data-e-1, data-e-2 requested more than spec.storage.size." in plan.message


def _full() -> Observation:
    """No member answers: their volumes are full."""
    return without_quorum(_with_sizes("1Gi", "1Gi"))


def test_full_volumes_grow_without_a_quorum() -> None:
    plan = planned(LARGER, _full())
    assert plan.phase in (Phase.STARTING, Phase.QUORUM_LOST)
    assert len(action_of(plan, ExpandVolumes).claims) == 3
    assert not action_of(plan, ExpandVolumes).stateful_sets
    assert plan.message.startswith("Expanding data-e-0, data-e-1, data-e-2 to 2Gi. 0 of 3 members are healthy")


def test_volumes_of_a_hibernated_cluster_grow() -> None:
    hibernated = replace(LARGER, size=0)
    observed = replace(_with_sizes("1Gi", "1Gi"), pods=(), objects={})
    assert len(action_of(planned(hibernated, observed), ExpandVolumes).claims) == 3


def test_volumes_grow_during_the_first_start() -> None:
    created = replace(applied(nothing(), planned(LARGER, nothing())), certificates=Certificates())
    claims = tuple(claim(number, requested="1Gi", capacity="1Gi") for number in range(3))
    plan = planned(LARGER, replace(created, claims=claims))
    assert plan.phase is Phase.BOOTSTRAPPING
    assert len(action_of(plan, ExpandVolumes).claims) == 3


def test_paused_cluster_does_not_grow() -> None:
    assert planned(replace(LARGER, paused=True), _with_sizes("1Gi", "1Gi")).action is None


def test_quorum_loss_is_told_first_when_volumes_can_not_grow() -> None:
    plan = planned(LARGER, replace(_full(), unexpandable=("rigid",)))
    assert plan.action is None
    assert plan.phase is not Phase.UNSUPPORTED
    assert plan.message.startswith("0 of 3 members are healthy")
    assert "StorageClass rigid does not allow it" in plan.message
    refused = planner.rejected(situation(LARGER, _full()), planned(LARGER, _full()), "why")
    assert refused.message.startswith("0 of 3 members are healthy")
    assert "The PVCs can't grow to 2Gi: why." in refused.message
    assert refused.phase is plan.phase
