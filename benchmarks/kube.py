"""Access of the benchmarks to the sandbox cluster."""

from __future__ import annotations

import base64
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.client import Client
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.endpoint import Endpoint, Tls
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.fanout import ask_all
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube, KubeError, connect
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from sandbox import cluster as sandbox
from sandbox import layout
from sandbox.errors import SandboxError
from sandbox.run import wait_for

from . import clusters

TIMEOUT = 300.0
REMOVAL = 900.0  # seconds: fifty finalizers take minutes with the stock runner


def kubectl(*arguments: str, stdin: str | None = None) -> str:
    return sandbox.kubectl(*arguments, stdin=stdin)


def api() -> Kube:
    """A connection for frequent requests, each of which would cost kubectl 0.1 s of CPU time.

    Do not keep it: the API server closes idle connections.
    """
    os.environ["KUBECONFIG"] = str(layout.kubeconfig())
    return connect()


def apply(*manifests: dict[str, Any]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
    kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=text)


def require_no_other_clusters() -> None:
    """Fail if there are other EtcdClusters: reconciling them would distort the results."""
    found = json.loads(kubectl("get", "etcd", "--all-namespaces", "--output=json"))["items"]
    if others := clusters.unrelated(found):
        raise SandboxError(
            f"Benchmarks blocked: there are other EtcdClusters ({', '.join(others)}), which would distort the results. "
            "Delete them first (kubectl delete etcd --namespace=NAMESPACE NAME)."
        )


@contextmanager
def namespace(name: str) -> Iterator[str]:
    """A namespace for one measure, deleted completely afterwards."""
    _remove(name)
    kubectl("create", "namespace", name)
    try:
        yield name
    finally:
        _remove(name)


def _remove(name: str) -> None:
    if not kubectl("get", "namespace", name, "--ignore-not-found", "--output=name"):
        return
    where = f"--namespace={name}"
    kubectl("delete", "etcd", "--all", where, "--wait=false")
    wait_for(
        f"the EtcdClusters in {name} to be deleted",
        lambda: not kubectl("get", "etcd", where, "--output=name"),
        timeout=REMOVAL,
        every=1,
    )
    kubectl("delete", "statefulset,pvc", "--all", where, "--wait=false")
    kubectl("delete", "namespace", name, "--wait=false")
    wait_for(
        f"namespace {name} to be deleted",
        lambda: not kubectl("get", "namespace", name, "--ignore-not-found", "--output=name"),
        timeout=REMOVAL,
        every=1,
    )


def wait_for_all(where: str, names: list[str], what: str, check: Callable[[Manifest], bool]) -> None:
    """Wait until all these EtcdClusters pass the check."""
    end = time.monotonic() + TIMEOUT + 12 * len(names)
    connection = api()
    left = names
    found: dict[str, Manifest] = {}
    while left:
        with suppress(KubeError):  # retry when the API server is busy
            found = {each["metadata"]["name"]: each for each in connection.list("EtcdCluster", where, "")}
        left = [name for name in names if name not in found or not check(found[name])]
        if left and time.monotonic() > end:
            message = found.get(left[0], {}).get("status", {}).get("message", "no status")
            raise SandboxError(f"{len(left)} of {len(names)} EtcdClusters are not {what}. {left[0]}: {message}")
        time.sleep(0.1)


def seconds_until_healthy(where: str, names: list[str], size: int, started: float) -> float:
    """Seconds from `started` until each cluster has `size` healthy voters (linearizable read) and no learner."""
    left = set(names)
    tls: dict[str, Tls] = {}
    connection = api()  # kubectl would take CPU time from the measured processes
    with tempfile.TemporaryDirectory() as folder:
        while left:
            pods: list[Manifest] = []
            with suppress(KubeError):  # retry when the API server is busy
                pods = connection.list("Pod", where, "")
            for name in sorted(left):
                addresses = [
                    (pod["metadata"]["name"], pod["status"].get("podIP"))
                    for pod in pods
                    if pod["metadata"]["labels"].get("etcdops.dev/cluster") == name
                ]
                if len(addresses) < size or not all(address for _, address in addresses):
                    continue
                if name not in tls:
                    tls[name] = read_tls(Path(folder) / name, where, name)
                members = [
                    Client(Endpoint(f"https://{pod}.{name}-peers.{where}.svc:2379", address), tls[name], timeout=2)
                    for pod, address in addresses
                ]
                answers = ask_all(members, is_healthy_with(size))
                if all(not isinstance(answer, EtcdError) and answer for answer in answers):
                    left.remove(name)
            if time.monotonic() - started > TIMEOUT:
                raise SandboxError(f"Clusters not healthy after {TIMEOUT:.0f} s: {', '.join(sorted(left))}.")
            time.sleep(0.1)
    return time.monotonic() - started


def is_healthy_with(size: int) -> Callable[[Client], bool]:
    """A request that checks that a member is healthy and that its cluster has `size` voters and no learner."""

    def ask(client: Client) -> bool:
        with client:
            client.health()
            members = client.members().members
            return len(members) == size and not any(member.is_learner for member in members)

    return ask


def read_tls(folder: Path, where: str, name: str) -> Tls:
    """The client certificates. They are loaded here, so the files may be deleted afterwards."""
    secret = api().get("Secret", where, f"{name}-client-tls")
    if secret is None:
        raise SandboxError(f"Secret {where}/{name}-client-tls not found.")
    folder.mkdir()
    for field in ("ca.crt", "tls.crt", "tls.key"):
        (folder / field).write_bytes(base64.b64decode(secret["data"][field]))
    tls = Tls(str(folder / "ca.crt"), str(folder / "tls.crt"), str(folder / "tls.key"))
    _ = tls.context
    return tls
