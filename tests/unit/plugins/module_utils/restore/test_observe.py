"""What is observed of an EtcdRestore, from a real kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import parse as parse_cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.api.restore import Restore, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import claim_manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import jobs
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.jobs import Source, member, transfer_name
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.observe import observe
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.planner import backup_name

from tests.unit.plugins.objects import Namespace

SOURCE = {"claim": {"name": "disk", "path": "example/one.db"}}
IN_PLACE = {"inPlace": {"cluster": "example", "confirm": "example"}}


@pytest.fixture(autouse=True)
def _operator(namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod that the operator runs in."""
    namespace.pod("operator-1", {})
    monkeypatch.setenv("POD_NAMESPACE", namespace.name)
    monkeypatch.setenv("POD_NAME", "operator-1")


def _restore(namespace: Namespace, target: Manifest | None = None, source: Manifest | None = None) -> Restore:
    spec = {"source": source or SOURCE, **(target or IN_PLACE)}
    return parse(namespace.resource("EtcdRestore", "back", spec))


def _new(**spec: Any) -> Manifest:
    return {"newCluster": {"name": "fresh", "spec": {"size": 3, "version": "3.6.16", **spec}}}


def _cluster(namespace: Namespace, status: Manifest | None = None) -> Cluster:
    return parse_cluster(namespace.cluster("example", status))


def test_restore_in_place_is_observed_with_its_cluster_and_pvcs(namespace: Namespace) -> None:
    cluster = _cluster(namespace, {"phase": "Running", "clusterID": "old"})
    namespace.create(claim_manifest(cluster, "example-0"))
    namespace.claim("data-example-1", labels={"etcdops.dev/cluster": "example"})  # of an earlier cluster
    namespace.claim("data-other-0")
    namespace.claim("disk")
    found = observe(namespace.kube, _restore(namespace), {})
    assert found.image == "operator:1"
    assert found.cluster == cluster
    assert (found.status["clusterID"], found.annotations) == ("old", {})
    assert {name: claim.cluster_uid for name, claim in found.claims.items()} == {
        "data-example-0": cluster.uid,
        "data-example-1": "",
    }
    assert (
        found.claims["data-example-0"].uid
        == namespace.get("PersistentVolumeClaim", "data-example-0")["metadata"]["uid"]
    )
    assert found.snapshot
    assert (found.snapshot.location, found.problem) == ("claim://disk/example/one.db", "")
    assert (found.source, found.jobs, found.backup, found.refusal) == (None, {}, None, "")


def test_cluster_that_does_not_exist_is_none_in_place(namespace: Namespace) -> None:
    found = observe(namespace.kube, _restore(namespace), {})
    assert (found.cluster, found.resource) == (None, None)


def test_new_cluster_is_observed_as_it_would_be_created(namespace: Namespace) -> None:
    found = observe(namespace.kube, _restore(namespace, _new()), {})
    assert found.resource is None
    assert found.cluster
    assert (found.cluster.name, found.cluster.storage.type, found.refusal) == ("fresh", "Persistent", "")
    assert namespace.kube.get("EtcdCluster", namespace.name, "fresh") is None


def test_new_cluster_that_kubernetes_would_refuse_is_observed_with_the_reason(namespace: Namespace) -> None:
    found = observe(namespace.kube, _restore(namespace, _new(options={"extra": {"no-such-option": "1"}})), {})
    assert "no-such-option" in found.refusal or "spec.options" in found.refusal
    assert found.cluster
    assert found.cluster.size == 0


def test_unknown_field_of_the_new_cluster_is_observed_by_its_name(namespace: Namespace) -> None:
    found = observe(namespace.kube, _restore(namespace, _new(sise=3)), {})
    assert found.refusal.endswith('unknown field "spec.sise"')
    assert "POST" not in found.refusal


def test_large_spec_of_the_new_cluster_is_refused_in_few_words(namespace: Namespace) -> None:
    unknown = {f"unknown{number}": "x" * 50_000 for number in range(10)}
    found = observe(namespace.kube, _restore(namespace, _new(**unknown)), {})
    assert 'unknown field "spec.unknown0"' in found.refusal
    assert len(found.refusal) < 5000
    with pytest.raises(KubeError, match="must have at most 16 items"):
        _restore(namespace, _new(**{f"unknown{number}": 1 for number in range(20)}))


@pytest.mark.parametrize(("repository", "refused"), [("evil.example.com/etcd", True), ("example.com/etcd", False)])
def test_image_that_the_operator_does_not_allow_is_observed(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch, repository: str, refused: bool
) -> None:
    monkeypatch.setenv("ETCDOPS_ALLOWED_REPOSITORIES", "example.com")
    found = observe(namespace.kube, _restore(namespace, _new(repository=repository)), {})
    assert ("does not allow images of evil.example.com/etcd" in found.refused_image) == refused


def test_source_is_the_snapshot_of_a_successful_backup_only(namespace: Namespace) -> None:
    _cluster(namespace)
    restore = _restore(namespace, source={"backup": "one"})
    found = observe(namespace.kube, restore, {})
    assert found.snapshot is None
    assert found.problem.startswith("EtcdBackup one does not exist")
    spec = {"cluster": "example", "destination": {"claim": {"name": "disk"}}}
    made = namespace.resource("EtcdBackup", "one", spec)
    for phase in ("Pending", "Running"):
        namespace.kube.patch_status("EtcdBackup", namespace.name, "one", {"phase": phase})
        found = observe(namespace.kube, restore, {})
        assert (found.snapshot, found.problem, found.pending) == (None, "", phase)
    namespace.kube.patch_status("EtcdBackup", namespace.name, "one", {"phase": "Failed", "message": "Full."})
    found = observe(namespace.kube, restore, {})
    assert found.problem == "EtcdBackup one failed; name another one. Its message: Full."
    assert found.pending == ""
    done = {"phase": "Succeeded", "sha256": "ab", "etcdVersion": "3.6.16"}
    namespace.kube.patch_status("EtcdBackup", namespace.name, "one", done)
    found = observe(namespace.kube, restore, {})
    assert found.problem == "PersistentVolumeClaim disk does not exist in this namespace"
    namespace.claim("disk")
    found = observe(namespace.kube, restore, {})
    assert found.snapshot
    assert found.problem == ""
    assert (found.snapshot.sha256, found.snapshot.version) == ("ab", "3.6.16")
    assert found.snapshot.location == f"claim://disk/example/one-{made['metadata']['uid'][:8]}.db"


def test_members_have_stopped_when_neither_replicas_nor_pods_are_left(namespace: Namespace) -> None:
    _cluster(namespace)
    namespace.claim("disk")
    restore = _restore(namespace)
    labels = {"etcdops.dev/cluster": "example"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "etcd", "image": "etcd:1"}]}}
    spec = {"replicas": 3, "serviceName": "x", "selector": {"matchLabels": labels}, "template": template}
    manifest: Manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "example"}, "spec": spec}
    namespace.create(manifest, {"observedGeneration": 1, "replicas": 3})
    namespace.pod("example-0", labels)

    def stopped() -> bool:
        return observe(namespace.kube, restore, {}).stopped

    def scale(replicas: int) -> None:
        meta = {**manifest["metadata"], "namespace": namespace.name}
        namespace.kube.apply({**manifest, "metadata": meta, "spec": {**spec, "replicas": replicas}})

    def controller(generation: int, replicas: int) -> None:
        status = {"observedGeneration": generation, "replicas": replicas}
        namespace.kube.patch_status("StatefulSet", namespace.name, "example", status)

    assert not stopped()
    scale(0)
    assert not stopped()
    controller(1, 0)  # it has not seen the change
    namespace.kube.delete("Pod", namespace.name, "example-0", how="force")
    assert not stopped()
    controller(2, 0)
    assert stopped()
    namespace.pod("example-1", labels)
    assert not stopped()


def test_jobs_on_volumes_are_observed_also_when_the_previous_data_is_deleted(namespace: Namespace) -> None:
    cluster = _cluster(namespace)
    namespace.claim("disk")
    restore = _restore(namespace)
    for ordinal in range(2):
        namespace.create(jobs.member(restore, cluster, ordinal, jobs.Source("10.0.0.9", 3, "operator:1")))
    namespace.create(jobs.after(restore, cluster, "tidy", 0, "operator:1"))
    namespace.complete("back-member-1")
    found = observe(namespace.kube, restore, {"size": 3}).jobs
    assert {name: job.complete for name, job in found.items()} == {
        "back-member-0": False,
        "back-member-1": True,
        "back-tidy-0": False,
    }
    assert observe(namespace.kube, restore, {"size": 3, "tidied": True}).jobs.keys() == found.keys()


def test_source_job_is_observed_by_its_pod(namespace: Namespace) -> None:
    cluster = _cluster(namespace)
    namespace.claim("disk")
    restore = _restore(namespace)
    assert restore.snapshot
    job = namespace.create(jobs.source(restore, restore.snapshot, cluster, "operator:1"))
    serving = {"name": "serve", "image": "x", "imageID": "", "ready": True, "restartCount": 0}
    running = {"running": {"startedAt": "2026-11-16T12:00:00Z"}}
    namespace.pod_of(
        job,
        {
            "phase": "Running",
            "podIP": "10.0.0.9",
            "podIPs": [{"ip": "10.0.0.9"}],
            "containerStatuses": [{**serving, "state": running}],
        },
    )
    found = observe(namespace.kube, restore, {}).source
    assert found
    assert (found.running, found.address) == (True, "10.0.0.9")


def test_snapshot_of_the_current_data_is_observed_by_its_backup(namespace: Namespace) -> None:
    _cluster(namespace)
    namespace.claim("disk")
    restore = _restore(namespace)
    spec = {"cluster": "example", "destination": {"claim": {"name": "disk"}}}
    requested = {"etcdops.dev/requested-by": "EtcdRestore/back"}
    namespace.resource("EtcdBackup", backup_name(restore), spec, {"phase": "Running"}, annotations=requested)
    assert observe(namespace.kube, restore, {}).backup == {"phase": "Running"}


def test_finished_restore_needs_neither_snapshot_nor_backup(namespace: Namespace) -> None:
    restore = _restore(namespace, source={"backup": "deleted-since"})
    found = observe(namespace.kube, restore, {"phase": "Succeeded"})
    assert (found.snapshot, found.problem, found.backup, found.stopped) == (None, "", None, True)


def test_pvc_without_labels_that_has_the_name_of_a_members_is_observed(namespace: Namespace) -> None:
    namespace.claim("data-fresh-0")
    namespace.claim("data-fresh-3")  # no member's
    restore = _restore(namespace, _new())
    found = observe(namespace.kube, restore, {})
    assert {name: claim.cluster_uid for name, claim in found.claims.items()} == {"data-fresh-0": ""}
    assert observe(namespace.kube, restore, {"phase": "Failed"}).claims == {}


def test_objects_of_something_else_are_foreign(namespace: Namespace) -> None:
    _cluster(namespace)
    namespace.claim("disk")
    restore = _restore(namespace)
    job = member(restore, parse_cluster(namespace.get("EtcdCluster", "example")), 0, Source("10.0.0.9", 3, "image"))
    name, meta = transfer_name(restore), {**job["metadata"], "ownerReferences": []}
    namespace.create({**job, "metadata": meta})
    namespace.create({**job, "metadata": {**meta, "name": "back-source"}})
    namespace.secret(name)
    spec = {"cluster": "example", "destination": {"claim": {"name": "disk"}}}
    namespace.resource("EtcdBackup", backup_name(restore), spec, {"phase": "Succeeded"})
    found = observe(namespace.kube, restore, {"size": 3})
    names = {"Job back-source", "Job back-member-0", f"Secret {name}", f"EtcdBackup {backup_name(restore)}"}
    assert found.foreign == names
    assert (found.source, found.jobs, found.backup) == (None, {}, None)
