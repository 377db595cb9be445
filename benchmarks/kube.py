"""The sandbox as the benchmarks see it."""

from __future__ import annotations

import base64
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import Client, Endpoint, EtcdError, Tls, ask_all

from sandbox import cluster as sandbox

TIMEOUT = 300.0


def kubectl(*arguments: str, stdin: str | None = None) -> str:
    return sandbox.kubectl(*arguments, stdin=stdin)


def apply(*manifests: dict[str, Any]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
    kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=text)


@contextmanager
def namespace(name: str) -> Iterator[str]:
    """A namespace for one measure, gone for good before the next one."""
    kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=true")
    kubectl("create", "namespace", name)
    try:
        yield name
    finally:
        kubectl("delete", "etcd", "--all", f"--namespace={name}", "--wait=true")
        kubectl("delete", "statefulset,pvc", "--all", f"--namespace={name}", "--wait=true")
        kubectl("delete", "namespace", name, "--wait=true")


def seconds_until_healthy(where: str, names: list[str], size: int, started: float) -> float:
    """Seconds from `started` until each cluster has `size` voters, no learner, and a linearizable read on each."""
    left = set(names)
    tls: dict[str, Tls] = {}
    with tempfile.TemporaryDirectory() as folder:
        while left:
            pods = json.loads(kubectl("get", "pods", f"--namespace={where}", "--output=json"))["items"]
            for name in sorted(left):
                addresses = [
                    (pod["metadata"]["name"], pod["status"].get("podIP"))
                    for pod in pods
                    if pod["metadata"]["labels"].get("etcdops.dev/cluster") == name
                ]
                if len(addresses) < size or not all(address for _, address in addresses):
                    continue
                if name not in tls:
                    tls[name] = _tls(Path(folder) / name, where, name)
                clients = [
                    Client(Endpoint(f"https://{pod}.{name}-peers.{where}.svc:2379", address), tls[name], timeout=2)
                    for pod, address in addresses
                ]
                if all(not isinstance(answer, EtcdError) and answer for answer in ask_all(clients, _is_whole(size))):
                    left.remove(name)
            if time.monotonic() - started > TIMEOUT:
                raise SystemExit(f"{sorted(left)} were not healthy within {TIMEOUT:.0f} s")
            time.sleep(0.05)
    return time.monotonic() - started


def _is_whole(size: int) -> Any:
    def ask(client: Client) -> bool:
        with client:
            client.health()
            members = client.members().members
            return len(members) == size and not any(member.is_learner for member in members)

    return ask


def _tls(folder: Path, where: str, name: str) -> Tls:
    secret = json.loads(kubectl("get", "secret", f"{name}-client-tls", f"--namespace={where}", "--output=json"))
    folder.mkdir()
    for field in ("ca.crt", "tls.crt", "tls.key"):
        (folder / field).write_bytes(base64.b64decode(secret["data"][field]))
    tls = Tls(str(folder / "ca.crt"), str(folder / "tls.crt"), str(folder / "tls.key"))
    _ = tls.context
    return tls
