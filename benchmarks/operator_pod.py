"""The operator while it is measured: its pod, its metrics, and the switch of its warm runner."""

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
SWITCH = "WARM_RUNNER"


@dataclass(frozen=True)
class Operator:
    """The pod that is at work now; another one after each change of the Deployment."""

    address: str
    group: usage.Group

    def reconciles(self) -> Reconciles:
        """What has ended so far. Asking costs the operator some milliseconds: don't ask often."""
        connection = http.client.HTTPConnection(self.address, 8080, timeout=10)
        try:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise SandboxError(f"The operator's metrics at {self.address}:8080 don't answer: {error}") from error
        finally:
            connection.close()
        if answer.status != 200:
            raise SandboxError(f"The operator's metrics at {self.address}:8080 answer {answer.status}.")
        return metrics.reconciles(text)


def at_work(clusters: int) -> Operator:
    """The operator, once it leads and has looked at each of so many clusters."""
    pods = json.loads(kubectl("get", "pods", _NAMESPACE, "--selector=app.kubernetes.io/name=etcdops", "--output=json"))[
        "items"
    ]
    pod = only(pods)
    meta = pod["metadata"]
    found = Operator(pod["status"]["podIP"], usage.of_pod(pod["spec"]["nodeName"], meta["uid"]))
    wait_for(
        "the operator to look at every cluster", lambda: found.reconciles().count >= clusters, timeout=120, every=1
    )
    return found


def only(pods: list[dict[str, Any]]) -> dict[str, Any]:
    """The one pod that runs."""
    running = [
        pod for pod in pods if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]
    if len(running) != 1:
        raise SandboxError(
            f"{len(running)} pods of the operator run in etcdops-system, not 1; install it (make deploy)."
        )
    return running[0]


@contextmanager
def without_warm_runner() -> Iterator[None]:
    """The operator with the stock runner; put back afterwards, whatever happens."""
    deployment = json.loads(kubectl("get", _DEPLOYMENT, _NAMESPACE, "--output=json"))
    before = switch(deployment)
    if before == "off":
        raise SandboxError(
            f"The operator has {SWITCH}=off already, so there is no warm runner to measure. Switch it on first: "
            f"kubectl set env {_NAMESPACE} {_DEPLOYMENT} {SWITCH}-"
        )
    try:
        _set(f"{SWITCH}=off")
        yield
    finally:
        _set(f"{SWITCH}-" if before is None else f"{SWITCH}={before}")


def switch(deployment: dict[str, Any]) -> str | None:
    """What the Deployment says of the warm runner."""
    environment = deployment["spec"]["template"]["spec"]["containers"][0].get("env", [])
    found: str | None = next((each.get("value") for each in environment if each["name"] == SWITCH), None)
    return found


def _set(what: str) -> None:
    kubectl("set", "env", _NAMESPACE, _DEPLOYMENT, what)
    kubectl("rollout", "status", _NAMESPACE, _DEPLOYMENT, "--timeout=110s")
