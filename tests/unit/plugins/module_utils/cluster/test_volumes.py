"""Larger volumes: what grows, what is waited for, and what can't grow."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, Storage
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import volumes
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import ExpandVolumes
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan, Ref

from .builders import CLUSTER, action_of, claim, running, situation, with_claims

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
    plan = _expand(CLUSTER, _with_sizes("2Gi", "1Gi"))
    assert (plan.phase, plan.reason, plan.action) == (Phase.EXPANDING, Reason.WAITING_FOR_VOLUMES, None)
    assert "data-e-0 (1Gi of 2Gi)" in plan.message


def test_nothing_grows_that_is_large_enough() -> None:
    assert volumes.expand(situation(CLUSTER, _with_sizes("1Gi", "1Gi"))) is None
    assert volumes.expand(situation(CLUSTER, _with_sizes("2Gi", "2Gi"))) is None
