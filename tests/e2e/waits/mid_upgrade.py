"""Edit a cluster in the middle of an upgrade: python -m tests.e2e.waits.mid_upgrade NAMESPACE CLUSTER VERSION [PATCH]

Waits until one member is ready with VERSION, and edits the EtcdCluster at once. Fails if no other member is left.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube, KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from sandbox import cluster as sandbox
from sandbox import command
from sandbox.errors import SandboxError

from ..checks.observed import api

_TIMEOUT = 120.0


def upgraded(pods: Iterable[Manifest], version: str) -> tuple[list[str], list[str]]:
    """Pods that are ready with this version, and pods with another version."""
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
    """Wait for the first upgraded pod."""
    ends = time.monotonic() + _TIMEOUT
    there: list[str] = []
    while not there:
        if time.monotonic() > ends:
            raise SandboxError(f"No member of {name} is ready with {version} after {_TIMEOUT:.0f} s.")
        time.sleep(0.05)
        try:
            there, left = upgraded(kube.list("Pod", namespace, f"etcdops.dev/cluster={name}"), version)
        except KubeError:  # a busy API server is asked again
            continue
        if there and not left:
            raise SandboxError(f"Every member of {name} runs {version} already.")
    return there


def main() -> None:
    namespace, name, version, *patch = sys.argv[1:]
    kube = api()
    there = wait(kube, namespace, name, version)
    if patch:
        edit = ("--type=merge", f"--patch={patch[0]}")
        sandbox.kubectl("patch", "etcd", name, f"--namespace={namespace}", *edit)
    _, left = upgraded(kube.list("Pod", namespace, f"etcdops.dev/cluster={name}"), version)
    if not left:
        raise SandboxError(f"Every member of {name} runs {version} meanwhile.")
    print(f"{', '.join(there)} upgraded, {', '.join(left)} not")


if __name__ == "__main__":
    command.run("mid_upgrade", main)
