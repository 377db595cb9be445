"""The planner, by its invariants: what it must do, and what it must never do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, Storage
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import config, manifests
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import (
    Answer,
    Certificates,
    Claim,
    Observed,
    Pod,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Plan, Step
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.planner import plan, rejected
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member, MemberList, Status

NOW = datetime(2026, 11, 16, tzinfo=UTC)
CLUSTER = Cluster(name="example", namespace="default", uid="uid-1", generation=1, size=3, version="3.6.16")


def _status(number: int, cluster_id: int = 0xABC) -> Status:
    return Status(
        member_id=number + 1,
        cluster_id=cluster_id,
        version="3.6.16",
        storage_version="3.6.0",
        leader_id=1,
        raft_term=2,
        raft_index=8,
        raft_applied_index=8,
        revision=1,
        db_size=20480,
        db_size_in_use=16384,
        is_learner=False,
        errors=(),
    )


def _applied(*plans: Plan, onto: Observed) -> Observed:
    """What is there after the objects of these plans were applied."""
    objects = dict(onto.objects)
    for each in plans:
        objects |= {f"{o['kind']}/{o['metadata']['name']}": o for o in each.apply}
    return replace(onto, objects=objects)


def _pod(cluster: Cluster, number: int, **changes: Any) -> Pod:
    template_hash = manifests.pod_template(cluster)["metadata"]["annotations"][manifests.TEMPLATE_HASH]
    pod = Pod(cluster.pod_name(number), f"pod-{number}", "198.18.1.1", True, False, NOW, template_hash, "")
    return replace(pod, **changes)


def _nothing() -> Observed:
    return Observed(NOW, cluster_id=None, certificates=Certificates(missing=("example-ca",)))


def _started(cluster: Cluster = CLUSTER, serving: int = 3) -> Observed:
    """Objects made, pods there, so many of them serving; not yet noted as formed."""
    seen = _applied(plan(cluster, _nothing()), onto=replace(_nothing(), certificates=Certificates()))
    answers = {cluster.pod_name(number): Answer(_status(number), healthy=True) for number in range(serving)}
    pods = tuple(_pod(cluster, number) for number in range(cluster.size))
    names = [cluster.pod_name(number) for number in range(cluster.size)]
    listed = tuple(
        Member(n + 1, name, (cluster.peer_url(name),), (cluster.client_url(name),) if n < serving else (), False)
        for n, name in enumerate(names)
    )
    return replace(seen, pods=pods, answers=answers, members=MemberList(0xABC, listed) if serving else None)


def _running(cluster: Cluster = CLUSTER) -> Observed:
    seen = _started(cluster)
    return replace(_applied(plan(cluster, seen), onto=seen), cluster_id="abc")


def _files(seen: Observed) -> dict[str, str]:
    files: dict[str, str] = seen.objects["ConfigMap/example-config"]["data"]
    return files


def test_a_new_cluster_starts_all_members_at_once() -> None:
    first = plan(CLUSTER, _nothing())
    assert (first.phase, first.step, first.certificates) == (Phase.BOOTSTRAPPING, Step.FORM, True)
    made = {o["kind"]: o for o in first.apply if o["kind"] != "Service"}
    assert made["StatefulSet"]["spec"]["replicas"] == 3
    assert made["PodDisruptionBudget"]["spec"]["minAvailable"] == 2
    for text in made["ConfigMap"]["data"].values():
        assert 'initial-cluster-state: "new"' in text
        assert text.count("=https://example-") == 3
    assert first.apply[-1]["kind"] == "StatefulSet"  # last: pods need the rest


def test_members_that_start_are_not_disturbed_until_one_is_ready() -> None:
    """Readiness is an event; only a member that is ready and does not answer is looked at again soon."""
    starting = _started(serving=0)
    waiting = replace(starting, pods=tuple(replace(pod, ready=False) for pod in starting.pods))
    assert plan(CLUSTER, _nothing()).requeue == plan(CLUSTER, waiting).requeue == 15
    one_ready = replace(waiting, pods=(replace(waiting.pods[0], ready=True), *waiting.pods[1:]))
    assert plan(CLUSTER, one_ready).requeue == 5


def test_one_member_alone_may_be_evicted() -> None:
    first = plan(replace(CLUSTER, size=1), _nothing())
    assert [o["spec"]["minAvailable"] for o in first.apply if o["kind"] == "PodDisruptionBudget"] == [0]


def test_the_first_quorum_is_noted_and_the_configuration_sealed() -> None:
    seen = _started()
    formed = plan(CLUSTER, seen)
    assert (formed.step, formed.cluster_id) == (Step.SEAL, "abc")
    for pod, text in formed.apply[0]["data"].items():
        assert config.is_sealed(CLUSTER, pod.removesuffix(".yaml"), text)


def test_what_would_have_kept_a_cluster_from_starting_does_not_keep_it_open() -> None:
    """A claim of another cluster, in nobody's way, while this one was starting."""
    seen = replace(_started(), claims=(Claim("data-example-5", "uid-of-another"),))
    assert plan(CLUSTER, seen).step is Step.SEAL
    mine = replace(_started(), claims=(Claim("data-example-1", "uid-of-another"),))
    assert plan(CLUSTER, mine).reason == "ForeignData"


def test_a_member_that_has_yet_to_start_may_join_but_not_start_a_cluster() -> None:
    formed = plan(CLUSTER, _started(serving=2))
    late = formed.apply[0]["data"]["example-2.yaml"]
    assert 'initial-cluster-state: "existing"' in late
    assert late.count("=https://example-") == 3
    assert not config.is_sealed(CLUSTER, "example-2", late)


def test_new_is_never_written_again_once_a_quorum_was_seen() -> None:
    """Invariant 3, in every state after the first quorum."""
    seen = _running()
    states = [
        seen,
        replace(seen, answers={}, members=None),
        replace(seen, pods=(), answers={}, members=None),
        replace(seen, objects={}),
        replace(seen, objects={}, claims=tuple(Claim(f"data-example-{n}", "uid-1") for n in range(3))),
        replace(seen, certificates=Certificates(due=("example-server-tls",))),
    ]
    for cluster in (CLUSTER, replace(CLUSTER, size=0), replace(CLUSTER, size=5), replace(CLUSTER, version="3.6.17")):
        for state in states:
            for manifest in plan(cluster, state).apply:
                for text in manifest.get("data", {}).values():
                    assert '"new"' not in text


def test_a_settled_cluster_is_left_alone() -> None:
    """Invariant 5."""
    settled = plan(CLUSTER, _running())
    assert (settled.phase, settled.step, settled.apply) == (Phase.RUNNING, Step.IDLE, ())
    assert settled.requeue >= 30


@pytest.mark.parametrize("change", [{"deleting": True}, {"ready": False}], ids=str)
def test_who_serves_but_makes_no_event_when_it_ends_is_looked_at_again_soon(change: dict[str, Any]) -> None:
    """A member answers while its pod is being deleted: the event of that has come already, and no other will."""
    seen = _running()
    unsure = plan(CLUSTER, replace(seen, pods=(replace(seen.pods[0], **change), *seen.pods[1:])))
    assert (unsure.phase, unsure.step) == (Phase.RUNNING, Step.IDLE)
    assert unsure.requeue <= 5


def test_what_the_api_server_adds_is_no_change() -> None:
    seen = _running()
    stateful_set = seen.objects["StatefulSet/example"]
    defaulted = stateful_set | {"status": {}, "spec": stateful_set["spec"] | {"revisionHistoryLimit": 10}}
    assert plan(CLUSTER, replace(seen, objects={**seen.objects, "StatefulSet/example": defaulted})).step is Step.IDLE


@pytest.mark.parametrize("name", ["Service/example-client", "PodDisruptionBudget/example", "StatefulSet/example"])
def test_an_object_that_was_deleted_is_made_again(name: str) -> None:
    seen = _running()
    objects = {key: value for key, value in seen.objects.items() if key != name}
    mended = plan(CLUSTER, replace(seen, objects=objects))
    assert mended.step is Step.UPDATE
    assert [f"{o['kind']}/{o['metadata']['name']}" for o in mended.apply] == [name]


def test_a_lost_configuration_comes_back_sealed() -> None:
    seen = _running()
    objects = {key: value for key, value in seen.objects.items() if not key.startswith("ConfigMap")}
    mended = plan(CLUSTER, replace(seen, objects=objects, answers={}, members=None))
    for pod, text in mended.apply[0]["data"].items():
        assert config.is_sealed(CLUSTER, pod.removesuffix(".yaml"), text)


def test_a_hand_edited_service_is_set_right() -> None:
    seen = _running()
    service = seen.objects["Service/example-client"]
    edited = service | {"spec": service["spec"] | {"selector": {"app": "other"}}}
    assert plan(CLUSTER, replace(seen, objects={**seen.objects, "Service/example-client": edited})).step is Step.UPDATE


def test_who_serves_before_its_pod_is_ready_is_looked_at_again_soon() -> None:
    """No event would come if that pod were deleted now: for the EndpointSlice nothing changes."""
    seen = _running()
    young, old = _pod(CLUSTER, 2, ready=False), _pod(CLUSTER, 2, ready=False, created=NOW - timedelta(hours=1))
    assert plan(CLUSTER, replace(seen, pods=(*seen.pods[:2], young))).requeue == 1
    assert plan(CLUSTER, replace(seen, pods=(*seen.pods[:2], old))).requeue == 5


def test_one_member_down_is_said_with_its_reason() -> None:
    seen = _running()
    pods = (*seen.pods[:2], _pod(CLUSTER, 2, ready=False, problem="ImagePullBackOff: no such image"))
    answers = {name: answer for name, answer in seen.answers.items() if name != "example-2"}
    degraded = plan(CLUSTER, replace(seen, pods=pods, answers=answers))
    assert (degraded.phase, degraded.step) == (Phase.DEGRADED, Step.IDLE)
    assert "2 of 3 members serve" in degraded.message
    assert "example-2: ImagePullBackOff" in degraded.message


def test_a_lost_quorum_is_said_and_nothing_is_touched() -> None:
    seen = _running()
    old = tuple(_pod(CLUSTER, n, created=NOW - timedelta(hours=1), ready=False) for n in range(3))
    down = {pod.name: Answer(None, healthy=False, error="connection refused") for pod in old}
    lost = plan(CLUSTER, replace(seen, pods=old, answers=down, members=None))
    assert (lost.phase, lost.step, lost.apply, lost.delete_pods) == (Phase.QUORUM_LOST, Step.IDLE, (), ())
    assert "restore from a backup" in lost.message


def test_pods_that_are_starting_are_given_time() -> None:
    seen = _running()
    young = tuple(_pod(CLUSTER, n, ready=False) for n in range(3))
    assert plan(CLUSTER, replace(seen, pods=young, answers={}, members=None)).phase is Phase.STARTING


def test_hibernate_and_wake_keep_the_cluster() -> None:
    seen, asleep = _running(), replace(CLUSTER, size=0)
    stop = plan(asleep, seen)
    assert (stop.step, stop.apply[0]["spec"]["replicas"]) == (Step.HIBERNATE, 0)
    stopped = replace(_applied(stop, onto=seen), pods=(), answers={}, members=None)
    assert plan(asleep, stopped).phase is Phase.HIBERNATED
    assert plan(asleep, stopped).step is Step.IDLE
    wake = plan(CLUSTER, stopped)
    assert wake.step is Step.WAKE
    assert wake.apply[-1]["spec"]["replicas"] == 3
    woken = _applied(wake, onto=stopped)
    for pod, text in _files(woken).items():
        assert config.is_sealed(CLUSTER, pod.removesuffix(".yaml"), text)


def test_waking_at_another_size_wakes_the_members_there_were() -> None:
    seen = _running()
    stopped = _applied(plan(replace(CLUSTER, size=0), seen), onto=replace(seen, pods=(), answers={}, members=None))
    assert plan(replace(CLUSTER, size=5), stopped).apply[-1]["spec"]["replicas"] == 3


def test_paused_means_hands_off() -> None:
    paused = replace(CLUSTER, paused=True, version="3.6.17")
    for seen in (_nothing(), _running(), replace(_running(), objects={})):
        answer = plan(paused, seen)
        assert (answer.phase, answer.step, answer.apply) == (Phase.PAUSED, Step.IDLE, ())


def test_data_of_an_earlier_cluster_is_not_adopted() -> None:
    """Invariant 4."""
    refused = plan(CLUSTER, replace(_nothing(), claims=(Claim("data-example-0", "uid-of-another"),)))
    assert (refused.phase, refused.reason, refused.step) == (Phase.UNSUPPORTED, "ForeignData", Step.IDLE)
    assert "data-example-0" in refused.message


def test_a_first_start_goes_on_at_its_own_size() -> None:
    seen = _started(serving=0)
    assert plan(replace(CLUSTER, size=5), seen).apply == ()


def test_pods_of_a_corrected_spec_are_made_anew_before_the_first_quorum_only() -> None:
    seen, corrected = _started(serving=0), replace(CLUSTER, version="3.6.15")
    again = plan(corrected, seen)
    assert again.step is Step.FORM
    assert set(again.delete_pods) == {"example-0", "example-1", "example-2"}
    assert plan(corrected, _running()).delete_pods == ()


def test_memory_storage_has_no_claims() -> None:
    first = plan(replace(CLUSTER, storage=Storage("Memory", "256Mi")), _nothing())
    spec = first.apply[-1]["spec"]
    assert "volumeClaimTemplates" not in spec
    assert {"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}} in spec["template"]["spec"][
        "volumes"
    ]


def test_a_missing_storage_class_and_a_broken_secret_are_refused() -> None:
    missing = plan(CLUSTER, replace(_nothing(), storage_class_missing=True))
    assert missing.reason == "StorageClassMissing"
    broken = replace(_nothing(), certificates=Certificates(problem="Secret own lacks tls.key."))
    assert plan(CLUSTER, broken).reason == "BrokenSecret"


def test_what_kubernetes_refuses_is_said_and_not_tried() -> None:
    refused = rejected(CLUSTER, plan(CLUSTER, _nothing()), "spec.affinity is invalid")
    assert (refused.phase, refused.step, refused.apply) == (Phase.UNSUPPORTED, Step.IDLE, ())
    assert "spec.affinity is invalid" in refused.message
