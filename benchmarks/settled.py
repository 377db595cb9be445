"""Reconcile of a settled cluster with the stock runner, compared with the warm runner."""

from __future__ import annotations

import time

from sandbox.errors import SandboxError
from sandbox.run import wait_for

from . import clusters, figures, operator_pod, usage
from .figures import Cost, Figures
from .kube import api, apply, namespace, wait_for_all
from .operator_pod import Operator

_NAME = "bench"
_WARM_UP = 3  # warm-up reconciles that are not counted
_REST = 1.0  # seconds: a reconcile is counted shortly before its processes exit


def settled_reconcile(rounds: int = 20) -> Figures:
    """Reconcile one settled cluster of three members repeatedly."""
    with namespace(f"{clusters.PREFIX}settled-reconcile") as where:
        apply(clusters.cluster(where, _NAME))
        wait_for_all(where, [_NAME], "settled", clusters.is_settled)
        # Both are measured in a new pod: setting and restoring the variable each roll out the Deployment.
        with operator_pod.without_warm_runner():
            stock = _cost(where, rounds)
        warm = _cost(where, rounds)
    return figures.settled_reconcile(stock, warm)


def _cost(where: str, rounds: int) -> Cost:
    operator = operator_pod.find(clusters=1)
    for _ in range(_WARM_UP):
        _reconcile(operator, where)
    before, cpu = operator.reconciles(), operator.group.cpu_seconds()
    with usage.sampled(operator.group, every=0.02) as memory:
        for _ in range(rounds):
            _reconcile(operator, where)
    cpu = operator.group.cpu_seconds() - cpu
    done = operator.reconciles().since(before)
    if done.errors:
        raise SandboxError(f"{done.errors:.0f} of {done.count:.0f} reconciles failed. See the operator's log.")
    return Cost(done.seconds / done.count, cpu / done.count, max(memory))


def _reconcile(operator: Operator, where: str) -> None:
    before = operator.reconciles().count
    api().apply(clusters.annotated(where, _NAME, str(time.time_ns())))
    wait_for("a reconcile to end", lambda: operator.reconciles().count > before, timeout=60, every=0.25)
    time.sleep(_REST)
