"""`make run`: what it checks first, and what the operator is started with. The operator itself runs in no unit test."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube
from kubernetes.client import ApiClient, Configuration

from sandbox import layout
from sandbox.errors import SandboxError
from tests.unit.plugins.apiserver import ApiServer
from tools import run


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server to which no other test has added CRDs."""
    started = ApiServer.start(tmp_path_factory.mktemp("apiserver"))
    try:
        yield started
    finally:
        started.end()


def test_missing_crds_and_another_operator_are_reported(alone: ApiServer) -> None:
    client = ApiClient(alone.settings())
    with pytest.raises(SandboxError, match=r"has no CRDs .* kubectl apply --server-side -k deploy/crd"):
        run.check(client)
    for path in (layout.REPOSITORY / "deploy/crd").glob("etcd*.yaml"):
        alone.define(path)
    run.check(client)
    labels = {"app.kubernetes.io/part-of": "etcdops"}
    container = {"name": "operator", "image": "example.test/etcdops"}
    deployment = {
        "metadata": {"name": "etcdops", "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    deployments = "apis/apps/v1/namespaces/default/deployments"
    kube = Kube(alone.settings)
    kube._call("POST", deployments, deployment)
    with pytest.raises(SandboxError, match=r"runs in the cluster already.* --namespace=default deployment/etcdops$"):
        run.check(client)
    scale = {"spec": {"replicas": 0}}
    kube._call("PATCH", f"{deployments}/etcdops", scale, content_type="application/merge-patch+json")
    run.check(client)


def test_refusal_and_silence_are_reported(alone: ApiServer) -> None:
    with pytest.raises(SandboxError, match="refuses: 401 Unauthorized"):
        run.check(ApiClient(alone.settings("wrong")))
    with pytest.raises(SandboxError, match=r"http://127\.0\.0\.1:1 does not answer"):
        run.check(ApiClient(Configuration(host="http://127.0.0.1:1", retries=0)))


def test_runs_use_the_users_kubeconfig_and_not_the_proxy() -> None:
    environment = run.environment({"KUBECONFIG": "/a:/b", "PYTHONPATH": "/repository"}, "/packages")
    assert environment["ETCDOPS_KUBECONFIG"] == environment["KUBECONFIG"] == "/a:/b"
    assert environment["PYTHONPATH"] == "/packages:/repository"
    assert environment["ANSIBLE_GATHERING"] == "explicit"
    assert environment["WATCH_NAMESPACE"] == ""
    assert run.environment({"WATCH_NAMESPACE": "team-a"}, "")["WATCH_NAMESPACE"] == "team-a"


@pytest.mark.parametrize("stops_by_itself", [True, False])
def test_interrupts_end_the_operator(stops_by_itself: bool, tmp_path: Path) -> None:
    started = tmp_path / "started"
    trap = "exit 3" if stops_by_itself else ":"
    script = f"trap '{trap}' TERM; touch {started}; while :; do sleep 0.05; done"
    program = f"import sys; from tools import run; sys.exit(run._run(['sh', '-c', {script!r}], {{}}))"
    process = subprocess.Popen([sys.executable, "-c", program], cwd=layout.REPOSITORY, stderr=subprocess.PIPE)
    while not started.exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.stderr
    assert b"stopping" in process.stderr.readline()
    if not stops_by_itself:
        time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0
    process.stderr.close()


def test_no_kubeconfig_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("KUBECONFIG", "ETCDOPS_KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run.main() == 1
    assert "run: No Kubernetes cluster: ~/.kube/config: " in capsys.readouterr().err
