"""The policy for annotations, as both installations bring it, on a real kube-apiserver with RBAC."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from sandbox import parts
from tests.unit.plugins.apiserver import TOKEN, ApiServer

from . import crd

TENANT = "tenant"
RUNNER = "ansible.sdk.operatorframework.io"
VERBOSITY = {f"{RUNNER}/verbosity": "99999999999"}
SPECS: dict[str, Manifest] = {
    "EtcdCluster": {"version": "3.6.16"},
    "EtcdBackup": {"cluster": "a", "destination": {"newClaim": {}}},
    "EtcdBackupSchedule": {"cluster": "a", "destination": {"newClaim": {}}, "schedule": "0 3 * * *"},
    "EtcdRestore": {"source": {"backup": "a"}, "inPlace": {"cluster": "a", "confirm": "a"}},
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """deploy/default, and bob, who is an editor in one namespace."""
    server = ApiServer.start(tmp_path_factory.mktemp("apiserver"), authorization="RBAC")
    try:
        server.namespace(TENANT)
        _kubectl(server, "apply", "--server-side", f"--kustomize={crd.ROOT}/deploy/default")
        _bind(server, "etcdops-editor")
        _kubectl(
            server, "create", "clusterrole", "slices", "--verb=create", "--resource=endpointslices.discovery.k8s.io"
        )
        _bind(server, "slices")
        _kubectl(
            server,
            "create",
            "rolebinding",
            "slices",
            "--clusterrole=slices",
            "--user=bob",
        )
        _until_enforced(server)
        yield server
    finally:
        server.end()


def _kubectl(server: ApiServer, *arguments: str, token: str = TOKEN, stdin: str | None = None) -> None:
    command = [str(parts.binary("kubernetes", "kubectl")), f"--kubeconfig={server.kubeconfig()}", f"--token={token}"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, input=stdin, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def _bind(server: ApiServer, role: str) -> None:
    _kubectl(server, "create", f"--namespace={TENANT}", "rolebinding", role, f"--clusterrole={role}", "--user=bob")


def _until_enforced(server: ApiServer) -> None:
    """The API server sees roles, CRDs and policies after a moment."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            for kind in SPECS:
                _bob(server).create(_object(kind, "probe"), dry_run=True)
            _bob(server).create(_object("EtcdCluster", "probe", VERBOSITY), dry_run=True)
        except KubeError as error:
            if "is written by the operator only" in str(error):
                return
        time.sleep(0.2)
    raise AssertionError("the policy is not enforced")


def _object(kind: str, name: str, annotations: dict[str, str] | None = None) -> Manifest:
    meta = {"namespace": TENANT, "name": name, "annotations": annotations or {}}
    return {"apiVersion": "etcdops.dev/v1beta1", "kind": kind, "metadata": meta, "spec": SPECS[kind]}


def _bob(server: ApiServer) -> Kube:
    return Kube(lambda: server.settings(f"{TOKEN}-bob"))


def _operator(server: ApiServer) -> Kube:
    return Kube(lambda: server.settings(f"{TOKEN}-operator"))


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize(
    "name",
    [
        *(f"{RUNNER}/{each}" for each in ("verbosity", "max-runner-artifacts", "reconcile-period", "new-in-2027")),
        *(f"etcdops.dev/{each}" for each in ("restore", "restored", "restored-by", "ready", "backed-up", "due")),
    ],
)
def test_annotation_of_the_operator_is_refused_when_a_user_creates_an_object(
    installed: ApiServer, kind: str, name: str
) -> None:
    with pytest.raises(KubeError, match="is written by the operator only") as refused:
        _bob(installed).create(_object(kind, "mine", {name: "3"}), dry_run=True)
    assert refused.value.status == 403
    assert f"metadata.annotations: {name} " in str(refused.value)


@pytest.mark.parametrize("name", ["skip-final-snapshot", "skip-cleanup", "delete-previous-data"])
def test_annotation_for_people_is_allowed(installed: ApiServer, name: str) -> None:
    annotations = {f"etcdops.dev/{name}": "true", "team": "a", "notetcdops.dev/x": "y"}
    for kind in SPECS:
        assert _bob(installed).create(_object(kind, "mine", annotations), dry_run=True)


def test_operator_writes_what_a_user_may_neither_change_nor_remove(installed: ApiServer) -> None:
    operator, bob = _operator(installed), _bob(installed)
    assert operator.create(_object("EtcdCluster", "held", {"etcdops.dev/restore": "a", "etcdops.dev/ready": "held-0"}))
    for value in ("b", None):
        with pytest.raises(KubeError, match=r"etcdops\.dev/restore is written by the operator only"):
            bob.annotate("EtcdCluster", TENANT, "held", {"etcdops.dev/restore": value})
    assert operator.annotate("EtcdCluster", TENANT, "held", {"etcdops.dev/restore": None})
    assert bob.annotate("EtcdCluster", TENANT, "held", {"etcdops.dev/ready": None})  # as `kubectl replace` does


def test_user_updates_an_object_that_the_operator_has_annotated(installed: ApiServer) -> None:
    def bob(*arguments: str, size: int = 0) -> None:
        cluster = _object("EtcdCluster", "used")
        cluster["spec"] = {"version": "3.6.16", "size": size}
        _kubectl(installed, f"--namespace={TENANT}", *arguments, token=f"{TOKEN}-bob", stdin=json.dumps(cluster))

    bob("apply", "--filename=-", size=1)
    written: dict[str, str | None] = {"etcdops.dev/ready": "used-0", "etcdops.dev/restored": "1"}
    _operator(installed).annotate("EtcdCluster", TENANT, "used", written)
    bob("apply", "--filename=-", size=3)
    bob("apply", "--server-side", "--force-conflicts", "--filename=-", size=5)
    bob("scale", "etcd/used", "--replicas=7")
    bob("annotate", "etcd/used", "etcdops.dev/skip-final-snapshot=true")
    found = _bob(installed).get("EtcdCluster", TENANT, "used")
    assert found
    assert (found["spec"]["size"], found["metadata"]["annotations"]["etcdops.dev/restored"]) == (7, "1")


def test_user_may_remove_what_the_runner_obeys(installed: ApiServer) -> None:
    alice, bob = Kube(installed.settings), _bob(installed)
    assert alice.create(_object("EtcdCluster", "loud", VERBOSITY))  # a cluster-admin may
    assert bob.annotate("EtcdCluster", TENANT, "loud", dict.fromkeys(VERBOSITY))


def test_endpoint_slices_that_the_operator_watches_are_included(installed: ApiServer) -> None:
    def create(labels: dict[str, str]) -> None:
        meta = {"namespace": TENANT, "name": "slice", "labels": labels, "annotations": VERBOSITY}
        content = {"metadata": meta, "addressType": "IPv4", "endpoints": []}
        path = f"apis/discovery.k8s.io/v1/namespaces/{TENANT}/endpointslices?dryRun=All"
        _bob(installed)._call("POST", path, content)

    create({"app": "web"})
    with pytest.raises(KubeError, match="is written by the operator only"):
        create({"etcdops.dev/endpoints": "client"})


def test_no_role_for_people_may_operate() -> None:
    for path in (crd.ROOT / "deploy/rbac/people").glob("*.yaml"):
        for rule in crd.load(path).get("rules", []):
            assert not {"operate", "*"} & set(rule["verbs"])


@pytest.mark.parametrize("install", ["default", "namespaced"])
def test_every_installation_brings_the_policy(install: str, tmp_path: Path) -> None:
    kubectl = str(parts.binary("kubernetes", "kubectl"))
    made = subprocess.run(
        [kubectl, "kustomize", crd.ROOT / "deploy" / install], check=True, capture_output=True, text=True
    )
    assert "kind: ValidatingAdmissionPolicyBinding" in made.stdout
