"""Objects that have a name which the cluster needs, and that belong to something else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import manifest as backup_manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import TlsSpec
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import foreign_objects
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    AddLearner,
    FormCluster,
    IssueCertificates,
    RemoveMember,
    ReplaceMember,
    SealConfiguration,
    TakeSnapshot,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import owner
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import (
    Certificates,
    Foreign,
    Observation,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from .builders import (
    CLUSTER,
    action_of,
    change,
    claim,
    down,
    kinds_of,
    nothing,
    planned,
    running,
    with_claim,
    with_claims,
    with_pod,
    without_answer,
    without_object,
    without_quorum,
)
from .test_bootstrap import starting

SERVICE = Foreign("Service", "e-client")
EVERY = [
    SERVICE,
    Foreign("Service", "e-peers"),
    Foreign("ConfigMap", "e-config"),
    Foreign("PodDisruptionBudget", "e"),
    Foreign("StatefulSet", "e"),
    Foreign("Secret", "e-ca-peer"),
    Foreign("Secret", "e-client-tls"),
]
FINAL: dict[str, Any] = {"destination": {"newClaim": {}}}


def beside(observed: Observation, *foreign: Foreign) -> Observation:
    """These objects belong to something else."""
    for each in foreign:
        observed = without_object(observed, f"{each.kind}/{each.name}")
    return replace(observed, foreign=foreign)


def _object(kind: str, name: str, **meta: Any) -> Manifest:
    return {"kind": kind, "metadata": {"name": name, **meta}}


# -- what is foreign


def test_only_objects_that_the_cluster_controls_are_its_own() -> None:
    own = _object("Service", "e-client", ownerReferences=[owner(CLUSTER)])
    theirs = _object("ConfigMap", "e-config", ownerReferences=[{**owner(CLUSTER), "kind": "Deployment", "uid": "1"}])
    former = _object("StatefulSet", "e", ownerReferences=[{**owner(CLUSTER), "uid": "uid-0"}])
    bare = _object("Secret", "e-client-tls")
    assert foreign_objects.foreign_among(CLUSTER, [own, theirs, former, bare]) == (
        Foreign("ConfigMap", "e-config"),
        Foreign("StatefulSet", "e", left_over=True),
        Foreign("Secret", "e-client-tls"),
    )
    provided = replace(CLUSTER, tls=TlsSpec("Provided", "e-client-tls", "p", "c"))
    assert foreign_objects.foreign_among(provided, [bare]) == ()


def test_backup_belongs_to_the_cluster_that_requested_it() -> None:
    own = backup_manifest("default", "one", "EtcdCluster/e", {})
    theirs = backup_manifest("default", "two", "EtcdCluster/f", {})
    assert foreign_objects.foreign_among(CLUSTER, [own, theirs]) == (Foreign("EtcdBackup", "two"),)


# -- before the first quorum


@pytest.mark.parametrize("foreign", EVERY, ids=str)
def test_nothing_starts_beside_a_foreign_object(foreign: Foreign) -> None:
    refused = planned(CLUSTER, beside(nothing(), foreign))
    assert (refused.phase, refused.reason, refused.action) == (Phase.UNSUPPORTED, Reason.FOREIGN_OBJECT, None)
    assert refused.message.startswith(f"{foreign.kind} {foreign.name}: not made for this EtcdCluster")
    assert refused.requeue <= 15
    assert isinstance(planned(CLUSTER, nothing()).action, FormCluster)  # when it was deleted


def test_nothing_starts_on_the_pvc_of_another_program() -> None:
    refused = planned(CLUSTER, with_claims(nothing(), claim(1, "")))
    assert (refused.phase, refused.reason, refused.action) == (Phase.UNSUPPORTED, Reason.FOREIGN_OBJECT, None)
    assert "PVC data-e-1" in refused.message


def test_objects_of_an_earlier_cluster_of_this_name_are_waited_for() -> None:
    waiting = planned(CLUSTER, beside(nothing(), replace(SERVICE, left_over=True)))
    assert (waiting.phase, waiting.reason, waiting.action) == (Phase.BOOTSTRAPPING, Reason.BOOTSTRAPPING, None)
    assert "Service e-client of an earlier EtcdCluster" in waiting.message


def test_members_that_have_formed_a_cluster_are_sealed_beside_a_foreign_object() -> None:
    for foreign in (SERVICE, Foreign("StatefulSet", "e")):
        assert isinstance(planned(CLUSTER, beside(starting(), foreign)).action, SealConfiguration)
    refused = planned(CLUSTER, beside(starting(), Foreign("ConfigMap", "e-config")))
    assert (refused.reason, refused.action) == (Reason.FOREIGN_OBJECT, None)


# -- on a running cluster


@pytest.mark.parametrize("foreign", EVERY, ids=str)
def test_running_cluster_keeps_its_phase_and_reports_a_foreign_object(foreign: Foreign) -> None:
    told = planned(CLUSTER, beside(running(), foreign))
    assert (told.phase, told.reason, told.action) == (Phase.RUNNING, Reason.FOREIGN_OBJECT, None)
    assert told.message.startswith("All 3 members are healthy. ")
    assert f"{foreign.kind} {foreign.name}" in told.message
    assert told.requeue <= 15


@pytest.mark.parametrize("foreign", [SERVICE, Foreign("PodDisruptionBudget", "e")], ids=str)
def test_lost_member_is_replaced_beside_an_object_that_this_does_not_need(foreign: Foreign) -> None:
    lost = beside(with_claim(down(running(), 2, scheduled=False), 2, deleting=True), foreign)
    plan = planned(CLUSTER, lost)
    assert isinstance(plan.action, ReplaceMember)
    assert foreign.kind not in kinds_of(plan)
    assert str(foreign) in plan.message


@pytest.mark.parametrize("foreign", [Foreign("ConfigMap", "e-config"), Foreign("StatefulSet", "e")], ids=str)
def test_no_member_is_changed_without_configuration_or_statefulset(foreign: Foreign) -> None:
    lost = beside(with_claim(down(running(), 2, scheduled=False), 2, deleting=True), foreign)
    told = planned(CLUSTER, lost)
    assert (told.phase, told.action) == (Phase.DEGRADED, None)
    assert str(foreign) in told.message
    gone = planned(CLUSTER, beside(without_quorum(running()), foreign))
    assert gone.phase is not Phase.RUNNING


def test_members_are_sealed_beside_a_foreign_statefulset() -> None:
    sealed = planned(CLUSTER, beside(running(opened=[1]), Foreign("StatefulSet", "e")))
    assert kinds_of(sealed) == ["ConfigMap"]


def test_foreign_secret_of_the_operator_is_not_called_a_lost_quorum() -> None:
    told = planned(CLUSTER, beside(without_quorum(running()), Foreign("Secret", "e-operator-tls")))
    assert (told.phase, told.reason, told.action) == (Phase.UNSUPPORTED, Reason.FOREIGN_OBJECT, None)
    assert "3 of 3 pods are ready" in told.message


def test_member_of_a_slot_with_a_foreign_pvc_is_removed_and_not_added_again() -> None:
    lost = with_claim(with_pod(without_answer(running(), 2), 2, crashed=True, log_tail=_DATA_GONE), 2, cluster_uid="")
    assert isinstance(planned(CLUSTER, lost).action, RemoveMember)
    left = replace(running(range(2)), claims=(claim(0), claim(1), claim(2, "")))
    refused = change(left)
    assert (refused.reason, refused.action) == (Reason.FOREIGN_OBJECT, None)
    assert "PVC data-e-2" in refused.message
    assert isinstance(change(replace(left, claims=left.claims[:2])).action, AddLearner)


_DATA_GONE = '{"level":"fatal","error":"cannot fetch cluster info from peer urls"}'


def test_hibernated_members_do_not_wake_on_a_foreign_pvc() -> None:
    asleep = replace(running(replicas=0), pods=(), claims=(claim(0), claim(1, ""), claim(2)))
    refused = planned(CLUSTER, without_quorum(asleep))
    assert (refused.phase, refused.reason, refused.action) == (Phase.HIBERNATED, Reason.FOREIGN_OBJECT, None)


def test_held_cluster_does_not_change_a_foreign_statefulset() -> None:
    held = planned(replace(CLUSTER, held_by="back"), beside(running(), Foreign("StatefulSet", "e")))
    assert (held.phase, held.reason, held.action) == (Phase.RESTORING, Reason.FOREIGN_OBJECT, None)


def test_shared_ca_is_reported() -> None:
    shared = replace(running(), certificates=Certificates(shared=("EtcdCluster shop",)))
    told = planned(CLUSTER, shared)
    assert (told.phase, told.reason, told.reason.warning) == (Phase.RUNNING, Reason.SHARED_CA, True)
    assert "EtcdCluster shop" in told.message


# -- EtcdBackups


def test_no_final_snapshot_is_taken_when_its_name_is_taken() -> None:
    deleted = replace(CLUSTER, deleting=True, final_snapshot=FINAL)
    assert isinstance(planned(deleted, running()).action, TakeSnapshot)
    refused = planned(deleted, beside(running(), Foreign("EtcdBackup", "e-final-uid-1")))
    assert (refused.phase, refused.reason) == (Phase.DELETING, Reason.FOREIGN_OBJECT)
    assert (refused.action, refused.finalized) == (None, False)
    assert "etcdops.dev/skip-final-snapshot=true" in refused.message
    skipped = replace(deleted, skip_final_snapshot=True)
    assert planned(skipped, beside(running(), Foreign("EtcdBackup", "e-final-uid-1"))).finalized


def test_upgrade_waits_when_the_name_of_its_snapshot_is_taken() -> None:
    cluster = replace(CLUSTER, version="3.6.17")
    taking = planned(cluster, running())
    name = action_of(taking, TakeSnapshot).backup["metadata"]["name"]
    refused = planned(cluster, beside(running(), Foreign("EtcdBackup", name)))
    assert (refused.phase, refused.reason, refused.action) == (Phase.UPGRADING, Reason.FOREIGN_OBJECT, None)
    assert refused.record["upgrade"]["snapshot"] == name


def test_certificates_are_renewed_beside_a_foreign_object() -> None:
    due = replace(running(), certificates=Certificates(due=("e-server-tls",)))
    plan = planned(CLUSTER, beside(due, Foreign("StatefulSet", "e")))
    assert isinstance(plan.action, IssueCertificates)
    assert "StatefulSet e: not made for this EtcdCluster" in plan.message


def test_foreign_object_is_told_once_when_the_image_is_not_allowed() -> None:
    observed = replace(beside(running(), SERVICE), allowed_repositories=("registry.example.com",))
    plan = planned(CLUSTER, observed)
    assert plan.message.count("Service e-client: not made") == 1
