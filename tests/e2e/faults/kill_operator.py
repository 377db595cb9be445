"""Kill the operator when it reports a reason: python -m tests.e2e.faults.kill_operator NAMESPACE CLUSTER REASON …

One REASON after the other: the next one comes from the operator that took over. All its processes are killed, and its
pod is deleted. So is its lease, except the last time: waiting for it to expire need not be tested each time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

from sandbox import cluster as sandbox
from sandbox import command
from sandbox.errors import SandboxError
from sandbox.run import say

from ..checks.observed import api
from ..fixtures.containers import first_process

_TIMEOUT = 120.0
_WHERE = ("--namespace=etcdops-system",)


def crash(namespace: str, name: str, reason: str) -> None:
    """Wait for the reason in the status, and kill the operator."""
    pod, container = operator()
    first = first_process(container)
    kube, end = api(), time.monotonic() + _TIMEOUT
    while True:
        status = (kube.get("EtcdCluster", namespace, name) or {}).get("status", {})
        progressing: dict[str, Any] = next((c for c in status.get("conditions", []) if c["type"] == "Progressing"), {})
        if (progressing.get("status"), progressing.get("reason")) == ("True", reason):
            break
        if time.monotonic() > end:
            raise SandboxError(
                f"{reason} was not seen within {_TIMEOUT:.0f} s; status.message is {status.get('message')}"
            )
        time.sleep(0.01)
    os.kill(first, signal.SIGKILL)  # ends all processes of its PID namespace
    say(f"killed {pod} at {status['phase']}, {reason}: {progressing.get('message')}")
    sandbox.kubectl("delete", "pod", *_WHERE, pod, "--grace-period=0", "--force")


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
    namespace, name, *reasons = sys.argv[1:]
    for number, reason in enumerate(reasons, 1):
        crash(namespace, name, reason)
        if number < len(reasons):
            release()


if __name__ == "__main__":
    command.run("kill_operator", main)
