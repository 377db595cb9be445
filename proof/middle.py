"""Edits a cluster in the middle of an upgrade: python -m proof.middle NAMESPACE CLUSTER VERSION [PATCH]

Waits until one member serves with VERSION, and edits the EtcdCluster at once. Fails if no other was left to move.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube, KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from sandbox import cluster as sandbox
from sandbox.errors import SandboxError

from .seen import api

_TIMEOUT = 120.0


def moved(pods: Iterable[Manifest], version: str) -> tuple[list[str], list[str]]:
    """Who serves with this version, and who has yet to move."""
    there, left = [], []
    for pod in pods:
        name, tag = pod["metadata"]["name"], pod["spec"]["containers"][0]["image"].rpartition(":v")[2]
        conditions = pod.get("status", {}).get("conditions", [])
        if tag != version:
            left.append(name)
        elif any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
            there.append(name)
    return sorted(there), sorted(left)


def wait(kube: Kube, namespace: str, name: str, version: str) -> list[str]:
    """Who has moved when the first one has."""
    ends = time.monotonic() + _TIMEOUT
    there: list[str] = []
    while not there:
        if time.monotonic() > ends:
            raise SandboxError(f"No member of {name} serves with {version} after {_TIMEOUT:.0f} s.")
        time.sleep(0.05)
        try:
            there, left = moved(kube.list("Pod", namespace, f"etcdops.dev/cluster={name}"), version)
        except KubeError:  # a busy API server is asked again
            continue
        if there and not left:
            raise SandboxError(f"Every member of {name} has moved to {version} already.")
    return there


def main() -> None:
    namespace, name, version, *patch = sys.argv[1:]
    kube = api()
    there = wait(kube, namespace, name, version)
    if patch:
        edit = ("--type=merge", f"--patch={patch[0]}")
        sandbox.kubectl("patch", "etcd", name, f"--namespace={namespace}", *edit)
    _, left = moved(kube.list("Pod", namespace, f"etcdops.dev/cluster={name}"), version)
    if not left:
        raise SandboxError(f"Every member of {name} has moved to {version} meanwhile.")
    print(f"{', '.join(there)} moved, {', '.join(left)} not")


if __name__ == "__main__":
    try:
        main()
    except SandboxError as problem:
        sys.exit(f"middle: {problem}")
