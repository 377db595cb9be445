"""What a real API server refuses in a dry run is reported, and nothing is applied."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import planner
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    ExpandVolumes,
    FormCluster,
    ReplaceMember,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.validation import validate
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan

from ...apiserver import ApiServer
from .builders import (
    CLUSTER,
    action_of,
    down,
    kinds_of,
    nothing,
    planned,
    running,
    situation,
    with_claim,
    without_quorum,
)

NAMESPACE = CLUSTER.namespace


@pytest.fixture(scope="module")
def kube(apiserver: ApiServer) -> Kube:
    return Kube(apiserver.settings)


def _validated(kube: Kube, cluster: Cluster) -> tuple[Plan, Plan]:
    """The plan for a new cluster, before and after its validation."""
    s = situation(cluster, nothing())
    plan = planner.plan(s)
    assert isinstance(plan.action, FormCluster)
    return plan, validate(kube, s, plan)


def test_valid_plan_is_returned_as_it_is_and_nothing_is_created(kube: Kube) -> None:
    plan, validated = _validated(kube, CLUSTER)
    assert validated == plan
    assert kube.get("StatefulSet", NAMESPACE, "e") is None


def test_pod_that_the_api_server_rejects_is_reported(kube: Kube) -> None:
    toleration = {"key": "a", "operator": "Unknown"}
    plan, validated = _validated(kube, replace(CLUSTER, pod={"tolerations": [toleration]}))
    assert (validated.phase, validated.reason, validated.action) == (Phase.UNSUPPORTED, Reason.REJECTED, None)
    assert "tolerations" in validated.message
    assert "Correct spec.pod." in validated.message
    assert validated.record == plan.record


def test_expansion_that_the_api_server_rejects_is_reported(kube: Kube) -> None:
    """Only a bound PVC of a StorageClass that allows it can grow."""
    cluster = replace(CLUSTER, storage=replace(CLUSTER.storage, size="2Gi"))
    for number in range(3):
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": NAMESPACE, "name": f"data-e-{number}"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        assert kube.create(claim)
    observed = running()
    observed = replace(observed, claims=tuple(replace(one, requested="1Gi", capacity="1Gi") for one in observed.claims))
    s = situation(cluster, observed)
    plan = planner.change(s, s.membership) if s.membership else None
    assert plan
    assert isinstance(plan.action, ExpandVolumes)
    validated = validate(kube, s, plan)
    assert (validated.reason, validated.action) == (Reason.EXPANSION_REFUSED, None)
    live = kube.get("PersistentVolumeClaim", NAMESPACE, "data-e-0")
    assert live
    assert live["spec"]["resources"]["requests"]["storage"] == "1Gi"


def test_plan_without_an_action_needs_no_validation(kube: Kube) -> None:
    plan = planned(CLUSTER, running())
    assert validate(kube, situation(CLUSTER, running()), plan) is plan


def test_other_errors_of_the_api_server_are_not_hidden(apiserver: ApiServer) -> None:
    kube = Kube(lambda: apiserver.settings("a-wrong-token"))
    with pytest.raises(KubeError, match="Unauthorized"):
        _validated(kube, CLUSTER)


BAD = replace(CLUSTER, pod={"tolerations": [{"key": "a", "operator": "Unknown"}]})


def _observed(kube: Kube, cluster: Cluster, observed: Observation) -> Plan:
    s = situation(cluster, observed)
    return validate(kube, s, planner.plan(s))


def test_rejected_pod_does_not_keep_a_lost_member_from_being_replaced(kube: Kube) -> None:
    plan = _observed(kube, BAD, with_claim(down(running(), 2, deleting=True), 2, deleting=True))
    assert (plan.phase, plan.reason) == (Phase.REPAIRING, Reason.REPLACING_MEMBER)
    assert action_of(plan, ReplaceMember).pod == "e-2"
    assert kinds_of(plan) == ["ConfigMap"]
    assert "Kubernetes rejects the pods" in plan.message


def test_rejected_pod_of_a_healthy_cluster_changes_nothing(kube: Kube) -> None:
    plan = _observed(kube, BAD, running())
    assert (plan.phase, plan.reason, plan.action) == (Phase.UNSUPPORTED, Reason.REJECTED, None)


def test_rejected_pod_does_not_hide_quorum_loss(kube: Kube) -> None:
    plan = _observed(kube, BAD, without_quorum(running()))
    assert plan.phase in (Phase.STARTING, Phase.QUORUM_LOST)
    assert "Correct spec.pod." in plan.message
