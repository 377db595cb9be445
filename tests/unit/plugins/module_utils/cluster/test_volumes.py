"""More room: what grows, what is waited for, and what can't be."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Storage
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import volumes as expansion
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observed
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Step

from .clusters import CLUSTER, running

LARGER = replace(CLUSTER, storage=Storage(size="2Gi"))


def _with_claims(wanted: str, size: str) -> Observed:
    seen = running()
    return replace(seen, claims=tuple(replace(claim, wanted=wanted, size=size) for claim in seen.claims))


def test_claims_grow_and_the_set_that_makes_them_is_made_anew() -> None:
    plan = expansion.change(LARGER, _with_claims("1Gi", "1Gi"))
    assert plan
    assert (plan.phase, plan.step, plan.delete_sets) == (Phase.EXPANDING, Step.EXPAND, ("e",))
    assert [claim["metadata"]["name"] for claim in plan.apply] == ["data-e-0", "data-e-1", "data-e-2"]
    assert {claim["spec"]["resources"]["requests"]["storage"] for claim in plan.apply} == {"2Gi"}


def test_what_the_class_does_not_allow_is_refused_by_its_name() -> None:
    plan = expansion.change(LARGER, replace(_with_claims("1Gi", "1Gi"), unexpandable=("rigid",)))
    assert plan
    assert (plan.phase, plan.reason, plan.step, plan.apply) == (Phase.UNSUPPORTED, "ExpansionRefused", Step.IDLE, ())
    assert "StorageClass rigid does not allow it" in plan.message


def test_nothing_is_to_be_done() -> None:
    assert expansion.change(CLUSTER, _with_claims("1Gi", "1Gi")) is None
