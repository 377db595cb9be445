"""The first start of a cluster, until its first quorum."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, Storage
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import member_config
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import FormCluster, SealConfiguration
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.memory import recall
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Certificates, Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Ref

from .builders import (
    CLUSTER,
    action_of,
    answer,
    applied,
    claim,
    member,
    names,
    nothing,
    object_of,
    objects_of,
    planned,
    pod,
    recorded,
    running,
    view_of,
    with_claims,
    with_pod,
)


def starting(cluster: Cluster = CLUSTER, healthy: int = 3) -> Observation:
    """The objects are applied and the pods exist; so many members are healthy, and none of that is recorded."""
    observed = replace(applied(nothing(), planned(cluster, nothing())), certificates=Certificates())
    members = [member(n) if n < healthy else member(n, client_urls=()) for n in range(cluster.size)]
    answers = {cluster.client_url(cluster.pod_name(number)): answer(number + 1) for number in range(healthy)}
    pods = tuple(pod(number, cluster) for number in range(cluster.size))
    return replace(observed, pods=pods, view=view_of(answers, members))


def _unsealed(files: dict[str, str]) -> list[str]:
    return [
        name for name, text in files.items() if not member_config.is_sealed(CLUSTER, name.removesuffix(".yaml"), text)
    ]


def test_all_members_start_at_once() -> None:
    first = planned(CLUSTER, nothing())
    action = action_of(first, FormCluster)
    assert (first.phase, first.reason, action.issue_certificates) == (
        Phase.BOOTSTRAPPING,
        Reason.BOOTSTRAPPING,
        True,
    )
    assert object_of(first, "StatefulSet")["spec"]["replicas"] == 3
    assert object_of(first, "PodDisruptionBudget")["spec"]["minAvailable"] == 2
    for text in object_of(first, "ConfigMap")["data"].values():
        assert 'initial-cluster-state: "new"' in text
        assert text.count("=https://e-") == 3
    assert objects_of(first)[-1]["kind"] == "StatefulSet"  # last, because pods need the rest


def test_starting_members_are_looked_at_rarely_until_one_is_ready() -> None:
    """Readiness is an event; only a member that is ready and does not answer is looked at again soon."""
    waiting = starting(healthy=0)
    waiting = replace(waiting, pods=tuple(replace(one, ready=False) for one in waiting.pods))
    assert planned(CLUSTER, nothing()).requeue == planned(CLUSTER, waiting).requeue == 15
    assert planned(CLUSTER, with_pod(waiting, 0, ready=True)).requeue == 5


def test_single_member_may_be_evicted() -> None:
    first = planned(replace(CLUSTER, size=1), nothing())
    assert object_of(first, "PodDisruptionBudget")["spec"]["minAvailable"] == 0


def test_first_quorum_is_recorded_and_the_configuration_sealed() -> None:
    formed = planned(CLUSTER, starting())
    files = action_of(formed, SealConfiguration).objects[0]["data"]
    assert (formed.reason, formed.record["clusterID"]) == (Reason.FORMED, "abc")
    assert (len(files), _unsealed(files)) == (3, [])


def test_cluster_is_settled_after_the_configuration_was_sealed() -> None:
    observed = starting()
    formed = planned(CLUSTER, observed)
    settled = planned(CLUSTER, recorded(applied(observed, formed), formed))
    assert (settled.phase, settled.reason, settled.action) == (Phase.RUNNING, Reason.ALL_HEALTHY, None)


def test_foreign_claim_in_no_slot_of_this_cluster_does_not_keep_it_unsealed() -> None:
    """It was created while the cluster was starting."""
    assert isinstance(planned(CLUSTER, with_claims(starting(), claim(5, "another"))).action, SealConfiguration)
    assert planned(CLUSTER, with_claims(starting(), claim(1, "another"))).reason is Reason.FOREIGN_DATA


def test_member_that_starts_late_may_join_but_not_start_a_cluster() -> None:
    formed = planned(CLUSTER, starting(healthy=2))
    files = object_of(formed, "ConfigMap")["data"]
    assert 'initial-cluster-state: "existing"' in files["e-2.yaml"]
    assert files["e-2.yaml"].count("=https://e-") == 3
    assert _unsealed(files) == ["e-2.yaml"]


def test_minority_does_not_form_a_cluster() -> None:
    waiting = planned(CLUSTER, starting(healthy=1))
    assert (waiting.phase, waiting.action) == (Phase.BOOTSTRAPPING, None)
    assert "1 of 3 members are healthy" in waiting.message


def test_data_of_an_earlier_cluster_is_not_adopted() -> None:
    """Invariant 4."""
    refused = planned(CLUSTER, with_claims(nothing(), claim(0, "another")))
    assert (refused.phase, refused.reason, refused.action) == (Phase.UNSUPPORTED, Reason.FOREIGN_DATA, None)
    assert "data-e-0" in refused.message


def test_first_start_goes_on_at_its_own_size() -> None:
    assert planned(replace(CLUSTER, size=5), starting(healthy=0)).action is None


def test_pods_of_a_corrected_spec_are_recreated_only_before_the_first_quorum() -> None:
    observed, corrected = starting(healthy=0), replace(CLUSTER, version="3.6.15")
    action = action_of(planned(corrected, observed), FormCluster)
    assert action.stale_pods == tuple(Ref(f"e-{number}", f"pod-{number}") for number in range(3))
    assert not isinstance(planned(corrected, running()).action, FormCluster)


@pytest.mark.parametrize(
    ("changes", "stale"),
    [
        ({"problem": "ImagePullBackOff"}, True),
        ({"problem": "ImagePullBackOff", "started": True}, False),
        ({"problem": "not scheduled", "scheduled": False}, False),
        ({}, False),
    ],
    ids=str,
)
def test_pod_that_may_have_voted_in_memory_is_not_recreated(changes: dict[str, bool | str], stale: bool) -> None:
    memory = replace(CLUSTER, storage=Storage("Memory"))
    observed = with_pod(starting(memory, healthy=0), 1, **changes)
    action = action_of(planned(replace(memory, version="3.6.15"), observed), FormCluster)
    assert names(action.stale_pods) == (["e-1"] if stale else [])


def test_version_that_was_corrected_during_the_first_start_is_an_upgrade_in_progress() -> None:
    """Some members may have started with the former version."""
    cluster = replace(CLUSTER, version="3.6.17")
    observed = applied(starting(), planned(cluster, starting(healthy=0)))
    upgrade = recall(planned(cluster, observed).record).upgrade
    assert upgrade
    assert (upgrade.source, upgrade.to, upgrade.in_progress) == ("3.6.16", "3.6.17", True)


def test_restored_members_start_only_with_their_data() -> None:
    first = planned(replace(CLUSTER, size=5, restored=3), nothing())
    files = object_of(first, "ConfigMap")["data"]
    assert (sorted(files), _unsealed(files)) == (["e-0.yaml", "e-1.yaml", "e-2.yaml"], [])


def test_data_in_memory_has_no_pvc() -> None:
    spec = object_of(planned(replace(CLUSTER, storage=Storage("Memory", "256Mi")), nothing()), "StatefulSet")["spec"]
    assert "volumeClaimTemplates" not in spec
    volume = {"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}}
    assert volume in spec["template"]["spec"]["volumes"]


def test_missing_storage_class_and_invalid_secret_are_refused() -> None:
    missing = planned(CLUSTER, replace(nothing(), storage_class_missing=True))
    assert (missing.reason, missing.action) == (Reason.STORAGE_CLASS_MISSING, None)
    invalid = planned(CLUSTER, replace(nothing(), certificates=Certificates(problem="Secret own lacks tls.key.")))
    assert (invalid.reason, invalid.message) == (Reason.INVALID_SECRET, "Secret own lacks tls.key.")


def test_cluster_of_size_0_is_not_started() -> None:
    plan = planned(replace(CLUSTER, size=0), nothing())
    assert (plan.phase, plan.reason, plan.action) == (Phase.HIBERNATED, Reason.NEVER_STARTED, None)
