"""Kill the operator when it reports a reason: python -m tests.e2e.faults.kill_operator NAMESPACE CLUSTER FILE REASON …

FILE is written when it watches, so that the work of the operator can begin. One REASON after the other: the next one
comes from the operator that took over. All its processes are killed, and its pod is deleted. So is its lease, except
the last time: waiting for it to expire need not be tested each time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.kube import config
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from kubernetes.client import ApiClient, CustomObjectsApi
from kubernetes.watch import Watch

from sandbox import cluster as sandbox
from sandbox import command, layout
from sandbox.errors import SandboxError
from sandbox.run import say

from ..fixtures.containers import first_process

_TIMEOUT = 120
_WHERE = ("--namespace=etcdops-system",)


def crash(namespace: str, name: str, reason: str, watching: Path | None = None) -> None:
    """Wait for the reason in the status, and kill the operator."""
    pod, container = operator()
    first, message = first_process(container), ""
    for status in _statuses(namespace, name):
        if watching:
            watching.touch()
        message = status.get("message", "")
        if _is_progressing(status, reason):
            os.kill(first, signal.SIGKILL)  # ends all processes of its PID namespace
            say(f"killed {pod} at {status['phase']}, {reason}: {message}")
            sandbox.kubectl("delete", "pod", *_WHERE, pod, "--grace-period=0", "--force")
            return
    raise SandboxError(f"{reason} was not seen within {_TIMEOUT} s; status.message is {message}")


def _statuses(namespace: str, name: str) -> Iterator[Manifest]:
    """The status now, and each one that is written: some last for a moment only."""
    os.environ["KUBECONFIG"] = str(layout.kubeconfig())
    clusters = CustomObjectsApi(ApiClient(config.load())).list_namespaced_custom_object
    kind = ("etcdops.dev", "v1beta1", namespace, "etcdclusters")
    watch = Watch().stream(clusters, *kind, field_selector=f"metadata.name={name}", timeout_seconds=_TIMEOUT)
    return (event["object"].get("status", {}) for event in watch)


def _is_progressing(status: Manifest, reason: str) -> bool:
    progressing: dict[str, Any] = next((c for c in status.get("conditions", []) if c["type"] == "Progressing"), {})
    return (progressing.get("status"), progressing.get("reason")) == ("True", reason)


def release() -> None:
    sandbox.kubectl("delete", "lease", *_WHERE, "etcdops", "--ignore-not-found")


def operator() -> tuple[str, str]:
    """The operator's pod and container, once it runs."""
    end = time.monotonic() + _TIMEOUT
    while time.monotonic() < end:
        query = ("get", "pods", *_WHERE, "--selector=app.kubernetes.io/name=etcdops", "--output=json")
        for pod in json.loads(sandbox.kubectl(*query))["items"]:
            for container in pod.get("status", {}).get("containerStatuses", []):
                if "deletionTimestamp" not in pod["metadata"] and "running" in container.get("state", {}):
                    return pod["metadata"]["name"], container["containerID"].rpartition("//")[2]
        time.sleep(0.1)
    raise SandboxError(f"No operator runs in etcdops-system within {_TIMEOUT:.0f} s.")


def main() -> None:
    namespace, name, watching, *reasons = sys.argv[1:]
    for number, reason in enumerate(reasons, 1):
        crash(namespace, name, reason, Path(watching))
        if number < len(reasons):
            release()


if __name__ == "__main__":
    command.run("kill_operator", main)
