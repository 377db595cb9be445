"""What is observed of an EtcdBackup, from a real kube-apiserver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import Backup, Destination, S3Store, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.observe import missing, observe, own_image
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.plan import StartJob
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.planner import plan
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from tests.unit.plugins.objects import Namespace

CLAIM = {"claim": {"name": "disk"}}
MEMBERS = [{"name": "example-0", "id": "1", "role": "leader", "healthy": True}]


@pytest.fixture(autouse=True)
def _operator(namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod that the operator runs in."""
    namespace.pod("operator-1", {})
    monkeypatch.setenv("POD_NAMESPACE", namespace.name)
    monkeypatch.setenv("POD_NAME", "operator-1")


def _backup(namespace: Namespace, name: str = "one", destination: Manifest | None = None, **meta: Any) -> Backup:
    spec = {"cluster": "example", "destination": destination or CLAIM}
    return parse(namespace.resource("EtcdBackup", name, spec, **meta))


def _started(namespace: Namespace, backup: Backup) -> list[Manifest]:
    """What the plan for this EtcdBackup creates, created."""
    action = plan(backup, observe(namespace.kube, backup, {}), {}).action
    assert isinstance(action, StartJob)
    return [namespace.create(each) for each in action.objects]


def test_backup_that_has_not_started_is_observed_with_its_cluster(namespace: Namespace) -> None:
    namespace.cluster("example", {"phase": "Running", "members": MEMBERS})
    namespace.pod("example-0", {"etcdops.dev/cluster": "example"}, node="node-1")
    namespace.claim("disk")
    found = observe(namespace.kube, _backup(namespace), {})
    assert found.image == "operator:1"
    assert found.cluster
    assert (found.cluster.name, found.cluster.version) == ("example", "3.6.16")
    assert found.cluster_status["members"] == MEMBERS
    assert found.nodes == {"example-0": "node-1"}
    assert (found.job, found.cleanup, found.check_log, found.claim_uid) == (None, None, None, None)
    assert (found.missing, found.shared) == ("", False)


def test_cluster_that_does_not_exist_is_none(namespace: Namespace) -> None:
    found = observe(namespace.kube, _backup(namespace), {})
    assert (found.cluster, found.cluster_status, found.missing) == (None, {}, "")


def test_job_is_observed_by_its_pod(namespace: Namespace) -> None:
    namespace.cluster("example", {"members": MEMBERS})
    namespace.claim("disk")
    backup = _backup(namespace)
    (job,) = _started(namespace, backup)
    saved = {"name": "save", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    ended = {"terminated": {"exitCode": 0, "message": '{"size": 1}', "finishedAt": "2026-11-16T12:00:00Z"}}
    namespace.pod_of(job, {"phase": "Running", "initContainerStatuses": [{**saved, "state": ended}]})
    running = observe(namespace.kube, backup, {}).job
    assert running
    assert (running.begun, running.finished, running.pod) == (True, False, "one-backup-x1y2z")
    assert running.ended["save"].report == {"size": 1}

    namespace.kube.patch_status("Pod", namespace.name, "one-backup-x1y2z", {"phase": "Succeeded"})
    namespace.complete("one-backup")
    found = observe(namespace.kube, backup, {})
    assert found.job
    assert found.job.complete
    assert found.check_log is None  # no kubelet has it
    assert found.nodes == {}  # needed for a start only


def test_job_of_an_earlier_backup_of_the_same_name_counts_as_stopping(namespace: Namespace) -> None:
    namespace.cluster("example", {"members": MEMBERS})
    namespace.claim("disk")
    backup = _backup(namespace)
    _started(namespace, backup)
    found = observe(namespace.kube, replace(backup, uid="another"), {}).job
    assert found
    assert found.stopping


def test_finished_backup_is_observed_by_its_jobs_only(namespace: Namespace) -> None:
    namespace.cluster("example", {"members": MEMBERS})
    namespace.claim("disk")
    backup = _backup(namespace)
    _started(namespace, backup)
    ended = {"conditions": [{"type": "Complete", "status": "True"}]}
    found = observe(namespace.kube, backup, ended)
    assert found.job
    assert (found.cluster, found.image) == (None, "")
    assert observe(namespace.kube, replace(backup, deleting=True), ended).cluster


def test_own_pvc_is_known_by_its_label_until_it_is_deleted(namespace: Namespace) -> None:
    namespace.cluster("example", {"members": MEMBERS})
    backup = _backup(namespace, destination={"newClaim": {}})
    assert observe(namespace.kube, backup, {}).claim_uid is None
    claim, _ = _started(namespace, backup)
    assert claim["kind"] == "PersistentVolumeClaim"
    assert observe(namespace.kube, backup, {}).claim_uid == backup.uid
    namespace.kube.delete("PersistentVolumeClaim", namespace.name, "one-snapshot")
    assert "deletionTimestamp" in namespace.get("PersistentVolumeClaim", "one-snapshot")["metadata"]
    assert observe(namespace.kube, backup, {}).claim_uid is None


def test_pvc_of_that_name_without_our_label_belongs_to_another(namespace: Namespace) -> None:
    namespace.claim("one-snapshot")
    assert observe(namespace.kube, _backup(namespace, destination={"newClaim": {}}), {}).claim_uid == ""


def test_own_pvc_is_shared_when_another_backup_is_kept_on_it(namespace: Namespace) -> None:
    backup = _backup(namespace, destination={"newClaim": {}})
    deleting = replace(backup, deleting=True)
    assert not observe(namespace.kube, deleting, {}).shared
    _backup(namespace, "two", {"claim": {"name": "one-snapshot"}})
    assert observe(namespace.kube, deleting, {}).shared
    assert not observe(namespace.kube, backup, {}).shared  # it matters for a deletion only


def test_missing_objects_are_named(namespace: Namespace) -> None:
    namespace.cluster("example")
    found = observe(namespace.kube, _backup(namespace), {})
    assert found.missing == "PersistentVolumeClaim disk does not exist in this namespace"
    s3 = Destination(s3=S3Store("bucket", credentials_secret="keys", ca_secret="ca"))
    namespace.secret("ca")
    absent = "Secret keys and Secret age do not exist in this namespace"
    assert missing(namespace.kube, namespace.name, s3, "age") == absent
    namespace.secret("keys")
    namespace.secret("age")
    assert missing(namespace.kube, namespace.name, s3, "age") == ""


def test_image_of_the_operator_is_that_of_its_own_pod(namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert own_image(namespace.kube) == "operator:1"
    monkeypatch.setenv("POD_NAME", "absent")
    with pytest.raises(KubeError, match="POD_NAMESPACE and POD_NAME name no pod"):
        own_image(namespace.kube)
    monkeypatch.delenv("POD_NAME")
    with pytest.raises(KubeError, match="POD_NAMESPACE and POD_NAME name no pod"):
        own_image(namespace.kube)
