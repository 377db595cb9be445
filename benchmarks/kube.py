"""The sandbox as the benchmarks see it."""

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
REMOVAL = 900.0  # fifty finalizers with the stock runner take minutes


def kubectl(*arguments: str, stdin: str | None = None) -> str:
    return sandbox.kubectl(*arguments, stdin=stdin)


def api() -> Kube:
    """A connection for looking often: kubectl takes a tenth of a second of a core for each look. Use it, then drop it:
    the API server closes a connection that was idle for long."""
    os.environ["KUBECONFIG"] = str(layout.kubeconfig())
    return connect()


def apply(*manifests: dict[str, Any]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
    kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=text)


def no_other_clusters() -> None:
    """What the operator does for other clusters would be counted as well."""
    found = json.loads(kubectl("get", "etcd", "--all-namespaces", "--output=json"))["items"]
    if others := clusters.others(found):
        raise SandboxError(
            f"There are other EtcdClusters ({', '.join(others)}); the operator's work for them would be measured too. "
            "Delete them first (kubectl delete etcd --namespace=NAMESPACE NAME)."
        )


@contextmanager
def namespace(name: str) -> Iterator[str]:
    """A namespace for one measure, gone for good before the next one."""
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
        f"the EtcdClusters in {name} to go",
        lambda: not kubectl("get", "etcd", where, "--output=name"),
        timeout=REMOVAL,
        every=1,
    )
    kubectl("delete", "statefulset,pvc", "--all", where, "--wait=false")
    kubectl("delete", "namespace", name, "--wait=false")
    wait_for(
        f"namespace {name} to go",
        lambda: not kubectl("get", "namespace", name, "--ignore-not-found", "--output=name"),
        timeout=REMOVAL,
        every=1,
    )


def wait_for_all(where: str, names: list[str], what: str, check: Callable[[Manifest], bool]) -> None:
    """Wait until every one of these EtcdClusters passes the check."""
    end = time.monotonic() + TIMEOUT + 12 * len(names)
    connection = api()
    left = names
    found: dict[str, Manifest] = {}
    while left:
        with suppress(KubeError):  # a busy API server is asked again
            found = {each["metadata"]["name"]: each for each in connection.list("EtcdCluster", where, "")}
        left = [name for name in names if name not in found or not check(found[name])]
        if left and time.monotonic() > end:
            said = found.get(left[0], {}).get("status", {}).get("message", "it has no status")
            raise SandboxError(f"{len(left)} of {len(names)} EtcdClusters are not {what}; {left[0]}: {said}")
        time.sleep(0.1)


def seconds_until_healthy(where: str, names: list[str], size: int, started: float) -> float:
    """Seconds from `started` until each cluster has `size` voters, no learner, and a linearizable read on each."""
    left = set(names)
    tls: dict[str, Tls] = {}
    connection = api()  # what is measured needs the machine's cores, and kubectl would take a good part of one
    with tempfile.TemporaryDirectory() as folder:
        while left:
            pods: list[Manifest] = []
            with suppress(KubeError):  # a busy API server is asked again
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
                if all(not isinstance(answer, EtcdError) and answer for answer in ask_all(members, is_whole(size))):
                    left.remove(name)
            if time.monotonic() - started > TIMEOUT:
                raise SandboxError(f"{sorted(left)} were not healthy within {TIMEOUT:.0f} s")
            time.sleep(0.1)
    return time.monotonic() - started


def is_whole(size: int) -> Callable[[Client], bool]:
    """A question to a member: does it serve, and is it one of `size` voters with no learner?"""

    def ask(client: Client) -> bool:
        with client:
            client.health()
            members = client.members().members
            return len(members) == size and not any(member.is_learner for member in members)

    return ask


def read_tls(folder: Path, where: str, name: str) -> Tls:
    """A client's certificates; the files are needed no more."""
    secret = api().get("Secret", where, f"{name}-client-tls")
    if secret is None:
        raise SandboxError(f"There is no Secret {name}-client-tls in {where}.")
    folder.mkdir()
    for field in ("ca.crt", "tls.crt", "tls.key"):
        (folder / field).write_bytes(base64.b64decode(secret["data"][field]))
    tls = Tls(str(folder / "ca.crt"), str(folder / "tls.crt"), str(folder / "tls.key"))
    _ = tls.context
    return tls
