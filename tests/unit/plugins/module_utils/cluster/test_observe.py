"""Observing a real API server and real members."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import manifest as backup_manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, Storage
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import manifests
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import FormCluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import owner
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.memory import Upgrade, upgrade_record
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import NodeState, Pod
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observe import claim_of, observe, pod_of
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.situation import Situation
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from ...apiserver import ApiServer
from ...etcds import NAME, Certificates, eventually
from .builders import NOW, action_of, nothing, planned, template_hash
from .live import Live, live


@pytest.fixture
def one_live(apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """An EtcdCluster of one member that runs; no pod yet."""
    with live(apiserver, tmp_path_factory.mktemp("live"), 1) as found:
        yield found


class _WithoutClusterScope(Kube):
    """An API server that lets the operator read nothing but one namespace: ours allows everything."""

    def get(self, kind: str, namespace: str | None, name: str) -> Manifest | None:
        if namespace is None:
            raise KubeError(403, f"{kind} {name} is forbidden")
        return super().get(kind, namespace, name)


def _observed(live: Live, kube: Kube | None = None, **status: Any) -> Situation:
    return observe(kube or live.kube, live.cluster, status)


def test_members_pods_claims_and_objects_are_observed(three_live: Live) -> None:
    cluster_id = f"{three_live.etcds.client().status().cluster_id:x}"
    for number in range(3):
        three_live.claim(number)
    for manifest in action_of(planned(three_live.cluster, nothing()), FormCluster).objects:
        three_live.kube.apply(manifest)
    s = _observed(three_live, clusterID=cluster_id, phase="Running")
    view = s.observed.view
    assert (view.quorum, f"{view.cluster_id:x}") == (True, cluster_id)
    assert {one.member.name: one.healthy for one in view.voters} == {f"e-{number}": True for number in range(3)}
    assert {one.member.name: f"{one.member.id:x}" for one in view.voters} == {
        f"e-{number}": three_live.member_id(number) for number in range(3)
    }
    assert view.leader
    assert view.leader.member.name == three_live.cluster.pod_name(three_live.leader)
    assert [(one.name, one.ready, one.scheduled, one.template_hash) for one in s.observed.pods] == [
        (f"e-{number}", True, True, template_hash(three_live.cluster)) for number in range(3)
    ]
    assert [(one.name, one.cluster_uid, bool(one.uid), one.requested) for one in s.observed.claims] == [
        (f"data-e-{number}", three_live.cluster.uid, True, "1Gi") for number in range(3)
    ]
    assert set(s.observed.objects) == {
        "Service/e-peers",
        "Service/e-client",
        "ConfigMap/e-config",
        "PodDisruptionBudget/e",
        "StatefulSet/e",
    }
    assert (s.observed.memory.cluster_id, s.version, s.target) == (cluster_id, three_live.cluster.version, "")


def test_member_that_does_not_answer_is_observed_with_the_state_of_its_node(three_live: Live) -> None:
    killed = next(number for number in range(3) if number != three_live.leader)
    three_live.etcds.members[killed].kill()
    name = three_live.cluster.pod_name(killed)
    states = {}
    for ready in ("True", "False", "Unknown", ""):
        three_live.kube.delete("Pod", three_live.namespace, name, how="force")
        three_live.pod(killed, three_live.node(ready) if ready else "a-node-that-was-deleted")
        s = _observed(three_live)
        assert {one.member.name for one in s.observed.view.members if not one.healthy} == {name}
        assert (s.answer(name), "refused" in s.error(name)) == (None, True)
        states[ready] = _pod_of(s, name).node
    assert states == {
        "True": NodeState.READY,
        "False": NodeState.READY,
        "Unknown": NodeState.UNREACHABLE,
        "": NodeState.GONE,
    }
    s = _observed(three_live, _WithoutClusterScope(three_live.kube._load))
    assert _pod_of(s, name).node is NodeState.UNKNOWN


def _pod_of(s: Situation, name: str) -> Pod:
    found = s.observed.pod(name)
    assert found
    return found


def _term(key: str, *values: str) -> Manifest:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def test_volume_is_stranded_only_if_it_requires_nodes_that_do_not_exist(one_live: Live) -> None:
    """The annotation of the PVC names a node that is gone in every case: it is no evidence."""
    gone, host, zone = "a-node-that-was-deleted", "kubernetes.io/hostname", "topology.kubernetes.io/zone"
    assert one_live.node(hostname="a-host") != "a-host"
    one_live.etcds.members[0].kill()
    for number, terms in enumerate(
        (
            [_term(host, gone)],
            [_term(host, gone), _term(host, "another-that-was-deleted")],
            [],
            [_term(zone, "a-zone")],
            [_term(host, gone), _term(zone, "a-zone")],
            [_term(host, gone, "a-host")],
            [_term(host, gone), _term(host, "a-host")],
        )
    ):
        one_live.pod(number)
        volume = one_live.volume(*terms)
        one_live.claim(number, volume=volume, annotations={"volume.kubernetes.io/selected-node": gone})
    observed = _observed(one_live).observed
    assert [claim.name for claim in observed.claims if claim.stranded] == ["data-e-0", "data-e-1"]
    observed = _observed(one_live, _WithoutClusterScope(one_live.kube._load)).observed
    assert not any(claim.stranded for claim in observed.claims)


class _Counting(Kube):
    """Counts what is read of volumes."""

    volumes = 0

    def get(self, kind: str, namespace: str | None, name: str) -> Manifest | None:
        self.volumes += kind == "PersistentVolume"
        return super().get(kind, namespace, name)


def test_volumes_are_not_read_while_members_are_healthy(three_live: Live) -> None:
    for number in range(3):
        three_live.claim(number, volume=three_live.volume())
    kube = _Counting(three_live.kube._load)
    eventually(lambda: len(_observed(three_live, kube).observed.view.healthy) == 3)
    kube.volumes = 0
    assert _observed(three_live, kube).observed.claims
    assert kube.volumes == 0


def test_members_are_unknown_without_quorum(three_live: Live) -> None:
    for number in (0, 1):
        three_live.etcds.members[number].kill()
    eventually(lambda: _observed(three_live).membership is None)
    s = _observed(three_live)
    assert s.answer("e-2")
    assert not s.healthy("e-2")
    assert [s.answer("e-0"), s.answer("e-1")] == [None, None]


def test_member_of_another_cluster_does_not_count(one_live: Live) -> None:
    one_live.pod(0)
    cluster_id = f"{one_live.etcds.client().status().cluster_id:x}"
    assert _observed(one_live, clusterID=cluster_id).membership
    s = _observed(one_live, clusterID="abc")
    assert (s.membership, s.answer("e-0")) == (None, None)
    assert f"it belongs to another cluster, {cluster_id}" in s.error("e-0")


def test_pods_of_two_clusters_before_the_first_quorum_form_none(
    apiserver: ApiServer, one_live: Live, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A volume has data of another cluster."""
    one_live.pod(0)
    with live(apiserver, tmp_path_factory.mktemp("other"), 1) as other:
        address = other.cluster.host("e-0")
        one_live.pod(1)
        one_live.kube.patch_status("Pod", one_live.namespace, "e-1", {"podIP": address, "podIPs": [{"ip": address}]})
        s = _observed(one_live)
        assert s.membership is None
        assert "not of one cluster" in s.error("e-0")


def test_members_are_asked_with_the_certificate_of_the_operator(
    apiserver: ApiServer, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = {"ca.crt": "ca.crt", "tls.crt": "client.crt", "tls.key": "client.key"}
    data = {name: _encoded(Path(certificates.path(file))) for name, file in files.items()}
    with (
        live(apiserver, tmp_path_factory.mktemp("secure"), 1, certificates=certificates) as secure,
        pytest.MonkeyPatch.context() as patch,
    ):
        secure.pod(0)
        patch.setattr(Cluster, "host", lambda *_: NAME)
        without = _observed(secure)
        assert (without.membership, dict(without.observed.view.answers)) == (None, {})
        assert "e-operator-tls" in without.observed.certificates.missing
        meta = {"namespace": secure.namespace, "name": "e-operator-tls"}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
        secure.kube.create(secret)
        foreign = _observed(secure).observed
        assert (list(map(str, foreign.foreign)), foreign.view.answered) == (["Secret e-operator-tls"], False)
        assert "e-operator-tls" not in foreign.certificates.missing
        secure.kube.apply({**secret, "metadata": {**meta, "ownerReferences": [owner(secure.cluster)]}})
        s = _observed(secure)
        assert s.healthy("e-0")
        assert s.observed.view.quorum
        assert "e-operator-tls" not in s.observed.certificates.missing
        assert "Secret/e-operator-tls" not in s.observed.objects


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def test_snapshots_are_read_only_while_they_matter(one_live: Live) -> None:
    def backup(name: str) -> None:
        spec = {"cluster": "e", "destination": {"newClaim": {}}}
        assert one_live.kube.create(backup_manifest(one_live.namespace, name, "EtcdCluster/e", spec))

    def found(cluster: Any, upgrade: Upgrade | None = None) -> set[str]:
        return set(observe(one_live.kube, cluster, upgrade_record(upgrade)).observed.objects)

    cluster, upgrade = one_live.cluster, Upgrade("3.6.16", "3.6.17", NOW, "before")
    deleted = replace(cluster, deleting=True, final_snapshot={"destination": {"newClaim": {}}})
    final = f"e-final-{cluster.uid[:8]}"
    backup("before")
    backup(final)
    assert found(cluster) == set()
    assert found(cluster, upgrade) == {"EtcdBackup/before"}
    completed = replace(upgrade, completed=NOW)
    assert found(cluster, completed) == set()
    kept = replace(cluster, upgrade=replace(cluster.upgrade, keep_for=timedelta(hours=1)))
    assert found(kept, completed) == {"EtcdBackup/before"}
    assert found(deleted) == {f"EtcdBackup/{final}"}
    assert found(replace(deleted, skip_final_snapshot=True)) == {f"EtcdBackup/{final}"}
    assert planned(cluster, _observed(one_live).observed).phase is Phase.BOOTSTRAPPING


def test_missing_storage_class_is_observed_only_before_there_are_claims(one_live: Live) -> None:
    missing = replace(one_live.cluster, storage=replace(one_live.cluster.storage, class_name="missing"))
    existing = replace(missing, storage=replace(missing.storage, class_name=one_live.storage_class(expandable=False)))
    assert observe(one_live.kube, missing, {}).observed.storage_class_missing is True
    assert observe(one_live.kube, existing, {}).observed.storage_class_missing is False
    forbidden = _WithoutClusterScope(one_live.kube._load)
    assert observe(forbidden, missing, {}).observed.storage_class_missing is False
    one_live.claim(0)
    assert observe(one_live.kube, missing, {}).observed.storage_class_missing is False


def test_storage_class_is_looked_up_only_for_own_claims_that_should_grow(one_live: Live) -> None:
    rigid, flexible = (one_live.storage_class(expandable=expandable) for expandable in (False, True))
    one_live.claim(0, storage_class=rigid)
    one_live.claim(1, storage_class=flexible)
    one_live.claim(2, storage_class=one_live.storage_class(expandable=False), uid="another")
    one_live.claim(3, storage_class=one_live.storage_class(expandable=False), size="2Gi")
    larger = replace(one_live.cluster, storage=replace(one_live.cluster.storage, size="2Gi"))
    assert observe(one_live.kube, larger, {}).observed.unexpandable == (rigid,)
    assert observe(one_live.kube, one_live.cluster, {}).observed.unexpandable == ()
    assert observe(_WithoutClusterScope(one_live.kube._load), larger, {}).observed.unexpandable == ()


# -- what a pod's manifest means


def _pod(container: Manifest | None = None, **status: Any) -> Manifest:
    containers = [{"name": "etcd", "restartCount": 0, "state": {}, "lastState": {}, **container}] if container else []
    return {
        "metadata": {"name": "e-0", "uid": "uid", "creationTimestamp": NOW.isoformat(), "labels": {}},
        "spec": {"nodeName": "node", "containers": [{"name": "etcd", "image": "etcd:v3.6.16"}]},
        "status": {"containerStatuses": containers, **status},
    }


def _ended(seconds: int, **more: Any) -> Manifest:
    end = NOW + timedelta(seconds=seconds)
    return {"terminated": {"exitCode": 1, "startedAt": NOW.isoformat(), "finishedAt": end.isoformat(), **more}}


def test_running_pod_has_no_problem() -> None:
    found = pod_of(_pod({"state": {"running": {}}}, podIP="198.18.0.1"), {"node": NodeState.READY}, NOW)
    assert (found.address, found.version, found.node) == ("198.18.0.1", "3.6.16", NodeState.READY)
    assert (found.problem, found.started, found.crashed) == ("", True, False)
    assert (found.ready, found.deleting, found.overdue) == (False, False, False)


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        (
            _pod(conditions=[{"type": "PodScheduled", "status": "False", "message": "no nodes"}]),
            "not scheduled: no nodes",
        ),
        (
            _pod({"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}),
            "ImagePullBackOff: no such image",
        ),
        (_pod({"state": {"waiting": {"reason": "ContainerCreating"}}}), ""),
        (_pod(phase="Failed", message="Evicted"), "Evicted"),
    ],
    ids=["unscheduled", "image", "creating", "evicted"],
)
def test_problem_of_a_pod_is_what_kubernetes_reports(pod: Manifest, problem: str) -> None:
    found = pod_of(pod, {}, NOW)
    assert (found.problem, found.started) == (problem, False)


def test_crash_is_observed_with_the_end_of_the_log() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    crashed = pod_of(_pod({"restartCount": 3, "state": waiting, "lastState": _ended(5, message="the end")}), {}, NOW)
    assert (crashed.crashed, crashed.started, crashed.restarts, crashed.log_tail) == (True, True, 3, "the end")
    again = pod_of(_pod({"restartCount": 3, "state": {"running": {}}, "lastState": _ended(5)}), {}, NOW)
    assert (again.crashed, again.started) == (False, True)
    # It ran for a while: restarts are counted for a pod's whole life.
    late = pod_of(_pod({"restartCount": 3, "state": waiting, "lastState": _ended(90)}), {}, NOW)
    assert (late.crashed, late.restarts) == (True, 0)
    orderly = pod_of(_pod({"state": _ended(5, exitCode=0, message="the end")}), {}, NOW)
    assert (orderly.crashed, orderly.log_tail) == (True, "")
    killed = pod_of(_pod({"state": waiting, "lastState": _ended(5, reason="OOMKilled")}), {}, NOW)
    assert killed.out_of_memory


def test_log_is_read_when_a_stack_has_displaced_the_reason(one_live: Live) -> None:
    stack = "go.uber.org/zap.(*Logger).Panic(0xc000)\n\tbackend.go:75 +0x18d"
    reason = '{"level":"panic","msg":"failed to open database","error":"invalid database"}'

    class Logging(Kube):
        def log(self, _namespace: str, pod: str, container: str, lines: int = 20, size: int = 4096) -> str | None:
            assert (pod, container, lines, size) == ("e-0", "etcd", 60, 65536)
            return f"before\n{reason}\n{stack}"

    crashed = {"name": "etcd", "image": "e", "imageID": "e", "ready": False, "restartCount": 2}
    crashed |= {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": _ended(5, message=stack)}
    one_live.pod(0, containerStatuses=[crashed])
    seen = observe(Logging(one_live.kube._load), one_live.cluster, {})
    assert _pod_of(seen, "e-0").log_tail == reason
    without = observe(one_live.kube, one_live.cluster, {})  # there is no kubelet here
    assert _pod_of(without, "e-0").log_tail == stack


def test_pod_that_is_being_deleted_is_overdue_after_30_seconds() -> None:
    deleting = _pod()
    deleting["metadata"]["deletionTimestamp"] = NOW.isoformat()
    found = [pod_of(deleting, {}, NOW + timedelta(seconds=seconds)) for seconds in (29, 31)]
    assert [(one.deleting, one.overdue) for one in found] == [(True, False), (True, True)]


def test_claim_without_a_uid_label_belongs_to_no_cluster() -> None:
    meta = {"name": "data-e-0", "labels": {}, "deletionTimestamp": NOW.isoformat(), "uid": "uid"}
    found = claim_of({"metadata": meta, "spec": {}}, ())
    assert (found.cluster_uid, found.deleting, found.requested, found.capacity) == ("", True, "", "")


def test_foreign_objects_are_observed_and_not_used(one_live: Live) -> None:
    cluster = replace(one_live.cluster, size=2)
    meta = {"namespace": one_live.namespace, "name": cluster.config_map}
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"e-0.yaml": "theirs"}}
    one_live.kube.create(foreign)
    one_live.claim(0)
    claim = manifests.claim_manifest(cluster, "e-1")
    one_live.kube.create({**claim, "metadata": {**claim["metadata"], "labels": {}}})
    s = observe(one_live.kube, cluster, {})
    assert (list(map(str, s.observed.foreign)), s.files) == ([f"ConfigMap {cluster.config_map}"], {})
    assert [(one.name, one.cluster_uid) for one in s.observed.claims] == [("data-e-0", cluster.uid), ("data-e-1", "")]
    memory = replace(cluster, storage=Storage("Memory"))
    assert [one.name for one in observe(one_live.kube, memory, {}).observed.claims] == ["data-e-0"]


def test_pvcs_of_a_settled_cluster_are_read_once(one_live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    one_live.claim(0)
    asked: list[Any] = []
    read = one_live.kube.read

    def noted(found: list[Any]) -> Any:
        asked.extend(found)
        return read(found)

    monkeypatch.setattr(one_live.kube, "read", noted)
    observe(one_live.kube, one_live.cluster, {})
    assert [one.name for one in asked if one.kind == "PersistentVolumeClaim"] == [""]
