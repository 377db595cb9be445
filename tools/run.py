"""Runs the operator on this machine, against the cluster of the current kubeconfig: python -m tools.run

Roles and modules are read from the checkout in each reconcile, so an edit takes effect at once (no warm runner).
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import urllib3
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import observe
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import config
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import KubeError
from kubernetes.client import ApiClient, ApiException, AppsV1Api, CustomObjectsApi

from benchmarks.profile import settings
from sandbox import parts
from sandbox.errors import SandboxError
from sandbox.images import operator, recipe
from sandbox.layout import REPOSITORY

_GROUP, _VERSION = "etcdops.dev", "v1beta1"
_SECONDS = 10
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    try:
        check(ApiClient(config.load()))
        program = _program()
        with tempfile.TemporaryDirectory(prefix="etcdops-run-") as folder:
            operator.install_events_plugin(Path(folder))
            return _run([program, *arguments()], environment(os.environ, folder))
    except (SandboxError, KubeError) as error:
        print(f"run: {error}", file=sys.stderr)
        return 1


def check(client: ApiClient) -> None:
    """Check that the CRDs exist and that no other operator runs in the cluster."""
    try:
        CustomObjectsApi(client).get_api_resources(_GROUP, _VERSION, _request_timeout=_SECONDS)
        found = AppsV1Api(client).list_deployment_for_all_namespaces(
            label_selector="app.kubernetes.io/part-of=etcdops", _request_timeout=_SECONDS
        )
    except ApiException as error:
        if error.status != 404:
            raise SandboxError(f"{client.configuration.host} refuses: {error.status} {error.reason}.") from None
        raise SandboxError(
            f"{client.configuration.host} has no CRDs of {_GROUP}/{_VERSION}. "
            "Install them: kubectl apply --server-side -k deploy/crd"
        ) from None
    except urllib3.exceptions.HTTPError as error:
        raise SandboxError(f"{client.configuration.host} does not answer: {error}") from None
    for each in found.items:
        if each.spec.replicas:
            namespace, name = each.metadata.namespace, each.metadata.name
            raise SandboxError(
                f"An operator runs in the cluster already, in namespace {namespace}. "
                f"Stop it: kubectl scale --replicas=0 --namespace={namespace} deployment/{name}"
            )


def arguments() -> list[str]:
    """As in deploy/manager, but without leader election, metrics and probes, and with a readable log."""
    return [
        "run",
        f"--watches-file={REPOSITORY}/watches.yaml",
        f"--ansible-roles-path={REPOSITORY}/roles",
        "--ansible-verbosity=0",
        "--max-concurrent-reconciles=4",
        "--graceful-shutdown-timeout=30s",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--zap-encoder=console",
        "--zap-time-encoding=iso8601",
    ]


def environment(own: os._Environ[str] | dict[str, str], packages: str) -> dict[str, str]:
    """The environment of ansible-operator and of the runs that it starts."""
    kubeconfig = own.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    return {
        "WATCH_NAMESPACE": "",  # all namespaces, unless the caller sets it
        **own,
        **settings((REPOSITORY / "Dockerfile").read_text()),
        "PYTHONPATH": os.pathsep.join(filter(None, [packages, own.get("PYTHONPATH")])),
        "KUBECONFIG": kubeconfig,
        # ansible-operator sets KUBECONFIG for its runs, to its proxy.
        config.KUBECONFIG: kubeconfig,
        "WARM_RUNNER": "off",
        observe.OPERATOR: f"make run on {socket.gethostname()}",
    }


def _program() -> str:
    """The pinned ansible-operator if it is built, else one on PATH, else the pinned one, which is built now."""
    pinned = parts.binary("ansible-operator", "ansible-operator")
    if not pinned.exists() and (found := shutil.which("ansible-operator")):
        return found
    parts.build(recipe.runner())
    return str(pinned)


def _run(command: list[str], environ: dict[str, str]) -> int:
    """Run it to its end. The first Ctrl-C lets running reconciles finish (30 s at most), the second one kills them."""
    asked: list[int] = []
    started: list[subprocess.Popen[bytes]] = []

    def stop(number: int, _frame: object) -> None:
        asked.append(number)
        if len(asked) == 1:
            print("run: stopping; waiting for running reconciles. Press Ctrl-C again to stop at once.", file=sys.stderr)
        for process in started:
            if len(asked) == 1:
                process.terminate()
            else:
                os.killpg(process.pid, signal.SIGKILL)

    for number in _SIGNALS:  # before there is anything to stop
        signal.signal(number, stop)
    # In its own session, so that Ctrl-C in the terminal does not reach the reconciles.
    process = subprocess.Popen(command, env=environ, cwd=REPOSITORY, start_new_session=True)
    started.append(process)
    if asked:  # while it was being started
        process.terminate()
    code = process.wait()
    return 0 if asked else code


if __name__ == "__main__":
    sys.exit(main())
