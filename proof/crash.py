"""Kills the operator the moment it says that it takes a step: python -m proof.crash NAMESPACE CLUSTER REASON …

One REASON after the other: the next one can only come from the operator that took over. All its processes end at once,
with nothing put in order, and its pod is deleted. So is its lease, but for the last one's: that the next one waits for
it to run out need not be seen each time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

from sandbox import cluster as sandbox
from sandbox.errors import SandboxError
from sandbox.run import say

from .lose import process
from .seen import api

_TIMEOUT = 120.0
_WHERE = ("--namespace=etcdops-system",)


def crash(namespace: str, name: str, reason: str) -> None:
    """Wait for the reason in the status, and kill."""
    pod, container = _operator()
    first = process(container)
    kube, end = api(), time.monotonic() + _TIMEOUT
    while True:
        status = (kube.get("EtcdCluster", namespace, name) or {}).get("status", {})
        said: dict[str, Any] = next((c for c in status.get("conditions", []) if c["type"] == "Progressing"), {})
        if (said.get("status"), said.get("reason")) == ("True", reason):
            break
        if time.monotonic() > end:
            raise SandboxError(f"{reason} was not seen within {_TIMEOUT:.0f} s; it says {status.get('message')}")
        time.sleep(0.01)
    os.kill(first, signal.SIGKILL)  # the first process of a PID namespace takes all others with it
    say(f"killed {pod} at {status['phase']}, {reason}: {said.get('message')}")
    sandbox.kubectl("delete", "pod", *_WHERE, pod, "--grace-period=0", "--force")


def release() -> None:
    sandbox.kubectl("delete", "lease", *_WHERE, "etcdops", "--ignore-not-found")


def _operator() -> tuple[str, str]:
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
    try:
        main()
    except SandboxError as problem:
        sys.exit(f"crash: {problem}")
