"""The planner as a whole, by its invariants: what it must do, and what it must never do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import member_config, planner, status
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    ExpandVolumes,
    IssueCertificates,
    SealConfiguration,
    UpdateObjects,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Certificates
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason

from .builders import (
    CLUSTER,
    action_of,
    key,
    names,
    nothing,
    object_of,
    objects_of,
    planned,
    running,
    situation,
    with_object,
    with_pod,
    without_object,
    without_quorum,
)


def test_new_is_never_written_again_after_the_first_quorum() -> None:
    """Invariant 3, in every state after the first quorum."""
    observed = running()
    states = [
        observed,
        without_quorum(observed),
        without_quorum(replace(observed, pods=())),
        replace(observed, objects={}),
        replace(observed, objects={}, claims=()),
        replace(observed, certificates=Certificates(due=("e-server-tls",))),
    ]
    written = 0
    for cluster in (CLUSTER, replace(CLUSTER, size=0), replace(CLUSTER, size=5), replace(CLUSTER, version="3.6.17")):
        for state in states:
            for manifest in objects_of(planned(cluster, state)):
                for text in manifest.get("data", {}).values():
                    written += 1
                    assert '"new"' not in text
    assert written > 10


def test_settled_cluster_is_left_alone() -> None:
    """Invariant 5."""
    settled = planned(CLUSTER, running())
    assert (settled.phase, settled.action) == (Phase.RUNNING, None)
    assert settled.requeue >= 30


def test_defaults_of_the_api_server_are_no_drift() -> None:
    stateful_set = running().objects["StatefulSet/e"]
    defaulted = stateful_set | {"status": {}, "spec": stateful_set["spec"] | {"revisionHistoryLimit": 10}}
    assert planned(CLUSTER, with_object(running(), defaulted)).action is None


@pytest.mark.parametrize("name", ["Service/e-client", "PodDisruptionBudget/e", "StatefulSet/e"])
def test_deleted_object_is_created_again(name: str) -> None:
    plan = planned(CLUSTER, without_object(running(), name))
    assert [key(each) for each in action_of(plan, UpdateObjects).objects] == [name]


def test_deleted_configuration_is_created_again_sealed() -> None:
    plan = planned(CLUSTER, without_quorum(without_object(running(), "ConfigMap")))
    files = action_of(plan, SealConfiguration).objects[0]["data"]
    assert sorted(files) == ["e-0.yaml", "e-1.yaml", "e-2.yaml"]
    for name, text in files.items():
        assert member_config.is_sealed(CLUSTER, name.removesuffix(".yaml"), text)


def test_edited_service_is_corrected() -> None:
    service = running().objects["Service/e-client"]
    edited = service | {"spec": service["spec"] | {"selector": {"app": "other"}}}
    plan = planned(CLUSTER, with_object(running(), edited))
    assert isinstance(plan.action, UpdateObjects)
    assert object_of(plan, "Service")["spec"]["selector"] == service["spec"]["selector"]


def test_certificates_that_are_due_while_paused_are_reported_loudly() -> None:
    paused = replace(CLUSTER, paused=True)
    assert planned(paused, running()).reason is Reason.PAUSED
    observed = replace(running(), certificates=Certificates(due=("e-server-tls", "e-peer-tls")))
    plan = planned(paused, observed)
    assert (plan.phase, plan.reason, plan.action) == (Phase.PAUSED, Reason.CERTIFICATES_DUE, None)
    assert "e-server-tls, e-peer-tls are due for renewal" in plan.message
    before = status.status(situation(paused, running()), planned(paused, running()), {})
    assert [(e.type, e.reason) for e in status.events(paused, plan, before)] == [("Warning", "CertificatesDue")]
    after = status.status(situation(paused, observed), plan, before)
    degraded = next(each for each in after["conditions"] if each["type"] == "Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "CertificatesDue")
    assert status.events(paused, plan, after) == []


def test_paused_cluster_is_not_changed() -> None:
    paused = replace(CLUSTER, paused=True, version="3.6.17")
    for observed in (nothing(), running(), replace(running(), objects={})):
        plan = planned(paused, observed)
        assert (plan.phase, plan.reason, plan.action) == (Phase.PAUSED, Reason.PAUSED, None)


def test_missing_and_due_certificates_are_issued_without_a_restart() -> None:
    for certificates in (Certificates(missing=("e-peer-tls",)), Certificates(due=("e-peer-tls",))):
        plan = planned(CLUSTER, replace(running(), certificates=certificates))
        assert (plan.phase, plan.message) == (Phase.RUNNING, "Issuing certificates: e-peer-tls.")
        assert isinstance(plan.action, IssueCertificates)


def test_cluster_without_any_data_needs_a_backup() -> None:
    plan = planned(CLUSTER, without_quorum(replace(running(), objects={}, claims=(), pods=())))
    assert (plan.phase, plan.reason, plan.action) == (Phase.UNSUPPORTED, Reason.ALL_DATA_LOST, None)
    assert "Restore from a backup." in plan.message


def test_without_quorum_only_pods_that_never_ran_are_recreated() -> None:
    observed = without_quorum(running())
    for number in range(3):
        observed = with_pod(observed, number, template_hash="old", problem="ImagePullBackOff", started=number == 1)
    action = action_of(planned(CLUSTER, observed), UpdateObjects)
    assert (action.objects, action.delete_claims, names(action.stuck_pods)) == ((), (), ["e-0", "e-2"])


def test_objects_that_kubernetes_rejects_are_reported_and_not_applied() -> None:
    first = planned(CLUSTER, nothing())
    rejected = planner.rejected(situation(CLUSTER, nothing()), first, "spec.affinity is invalid")
    assert (rejected.phase, rejected.reason, rejected.action) == (Phase.UNSUPPORTED, Reason.REJECTED, None)
    assert "spec.affinity is invalid" in rejected.message


def test_rejected_expansion_is_reported_as_such() -> None:
    larger = replace(CLUSTER, storage=replace(CLUSTER.storage, size="2Gi"))
    observed = running()
    observed = replace(observed, claims=tuple(replace(one, requested="1Gi", capacity="1Gi") for one in observed.claims))
    expanding = planned(larger, observed)
    assert isinstance(expanding.action, ExpandVolumes)
    rejected = planner.rejected(situation(larger, observed), expanding, "only dynamically provisioned")
    assert (rejected.reason, rejected.action) == (Reason.EXPANSION_REFUSED, None)
    assert "only dynamically provisioned" in rejected.message
