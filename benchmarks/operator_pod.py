"""The measured operator: its pod, its metrics, and the environment variable that disables its warm runner."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sandbox.errors import SandboxError
from sandbox.run import wait_for

from . import metrics, usage
from .kube import kubectl
from .metrics import Reconciles

_NAMESPACE = "--namespace=etcdops-system"
_DEPLOYMENT = "deployment/etcdops"
VARIABLE = "WARM_RUNNER"


@dataclass(frozen=True)
class Operator:
    """The running operator pod. Each change of the Deployment replaces it."""

    address: str
    group: usage.Group

    def reconciles(self) -> Reconciles:
        """Completed reconciles so far. Each request costs the operator some milliseconds of CPU time."""
        connection = http.client.HTTPConnection(self.address, 8080, timeout=10)
        try:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise SandboxError(f"Cannot read the operator's metrics at {self.address}:8080: {error}") from error
        finally:
            connection.close()
        if answer.status != 200:
            raise SandboxError(
                f"Cannot read the operator's metrics at {self.address}:8080: HTTP status {answer.status}."
            )
        return metrics.reconciles(text)


def find(clusters: int) -> Operator:
    """Find the operator pod and wait until it has reconciled this many clusters."""
    pods = json.loads(kubectl("get", "pods", _NAMESPACE, "--selector=app.kubernetes.io/name=etcdops", "--output=json"))[
        "items"
    ]
    pod = running_pod(pods)
    meta = pod["metadata"]
    found = Operator(pod["status"]["podIP"], usage.of_pod(pod["spec"]["nodeName"], meta["uid"]))
    wait_for(
        "the operator to reconcile every cluster", lambda: found.reconciles().count >= clusters, timeout=120, every=1
    )
    return found


def running_pod(pods: list[dict[str, Any]]) -> dict[str, Any]:
    """The only running pod of the operator."""
    running = [
        pod for pod in pods if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]
    if len(running) != 1:
        raise SandboxError(
            f"{len(running)} pods of the operator are running in etcdops-system, expected 1. Run make deploy."
        )
    return running[0]


@contextmanager
def without_warm_runner() -> Iterator[None]:
    """Run the operator with the stock runner; the previous setting is restored afterwards."""
    deployment = json.loads(kubectl("get", _DEPLOYMENT, _NAMESPACE, "--output=json"))
    before = warm_runner_setting(deployment)
    if before == "off":
        raise SandboxError(
            f"Cannot measure the warm runner: the operator Deployment sets {VARIABLE}=off. Enable it first: "
            f"kubectl set env {_NAMESPACE} {_DEPLOYMENT} {VARIABLE}-"
        )
    try:
        _set_env(f"{VARIABLE}=off")
        yield
    finally:
        _set_env(f"{VARIABLE}-" if before is None else f"{VARIABLE}={before}")


def warm_runner_setting(deployment: dict[str, Any]) -> str | None:
    """Value of WARM_RUNNER in the operator Deployment; None if it is not set."""
    environment = deployment["spec"]["template"]["spec"]["containers"][0].get("env", [])
    found: str | None = next((each.get("value") for each in environment if each["name"] == VARIABLE), None)
    return found


def _set_env(what: str) -> None:
    kubectl("set", "env", _NAMESPACE, _DEPLOYMENT, what)
    kubectl("rollout", "status", _NAMESPACE, _DEPLOYMENT, "--timeout=110s")
