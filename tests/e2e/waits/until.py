"""Wait for a state of an object: python -m tests.e2e.waits.until NAMESPACE KIND NAME WHAT [ARGUMENT]

WHAT  settled PHASE  an EtcdCluster has that phase for its current spec, and is not progressing
      reason REASON  condition Progressing of an EtcdCluster has that reason
      phase PHASE    it has that phase; fails at once when it ended in another one
      ready          every replica is ready

Prints the object at that moment, as JSON. One process that polls often is cheaper than a retried task, which starts a
Python each time.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from sandbox import command
from sandbox.errors import SandboxError

from ..checks.observed import api

_TIMEOUT = 240.0
_EVERY = 0.2
_ENDS = ("Succeeded", "Failed")


def settled(status: Manifest, resource: Manifest, phase: str) -> bool:
    progressing = "True" in (each["status"] for each in _progressing(status))
    current = status.get("observedGeneration") == resource["metadata"]["generation"]
    return status.get("phase") == phase and not progressing and current


def reason(status: Manifest, _: Manifest, wanted: str) -> bool:
    return wanted in (each["reason"] for each in _progressing(status))


def phase(status: Manifest, _: Manifest, wanted: str) -> bool:
    found = status.get("phase")
    if found in _ENDS and found != wanted:
        raise SandboxError(f"It has {found}: {status.get('message')}")
    return found == wanted


def ready(status: Manifest, resource: Manifest, _: str) -> bool:
    return bool(status.get("readyReplicas", 0) == resource["spec"]["replicas"])


CHECKS: dict[str, Callable[[Manifest, Manifest, str], bool]] = {
    "settled": settled,
    "reason": reason,
    "phase": phase,
    "ready": ready,
}


def _progressing(status: Manifest) -> list[Any]:
    return [each for each in status.get("conditions", []) if each["type"] == "Progressing"]


def wait(namespace: str, kind: str, name: str, what: str, argument: str) -> Manifest:
    kube, ends = api(), time.monotonic() + _TIMEOUT
    found: Manifest | None = None
    while time.monotonic() < ends:
        try:
            found = kube.get(kind, namespace, name)
        except KubeError:  # a busy API server is asked again
            kube = api()
        else:
            if found is not None and CHECKS[what](found.get("status", {}), found, argument):
                return found
        time.sleep(_EVERY)
    status = json.dumps(found.get("status", {})) if found else "it does not exist"
    raise SandboxError(f"{kind} {name} is not {what} {argument} after {_TIMEOUT:.0f} s: {status}")


def main() -> None:
    match sys.argv[1:]:
        case [namespace, kind, name, what, *argument] if what in CHECKS:
            print(json.dumps(wait(namespace, kind, name, what, *(argument or [""]))))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    command.run("until", main)
