"""How the operator scales with 1, 10 and 50 single-member clusters, which all measures share."""

from __future__ import annotations

import time
from collections.abc import Iterable
from statistics import mean

from ansible_collections.etcdops.etcd.plugins.module_utils.plan import SETTLED

from sandbox.errors import SandboxError
from sandbox.run import say, wait_for

from . import clusters, figures, machine, operator_pod, usage
from .figures import Figures, Idle, Stage
from .kube import api, apply, namespace, wait_for_all
from .operator_pod import Operator

_MIB_EACH = 200  # memory of a member: in-memory WAL and data, the etcd process, and the overhead of a pod
_QUIET = 5.0  # seconds to wait after the clusters have settled
_IDLE_PERIOD = 45.0  # seconds
_REST = 1.0  # seconds: a reconcile is counted shortly before its processes exit


def measure(wanted: Iterable[str]) -> dict[str, Figures]:
    """Measure these keys of figures.STAGES."""
    wanted = list(wanted)
    counts = figures.stages(wanted)
    need, have = counts[-1] * _MIB_EACH, machine.available_mib()
    if have < need:
        raise SandboxError(
            f"{counts[-1]} clusters need about {need} MiB of memory, but {have} MiB are available. Free memory first."
        )
    return figures.growth(wanted, [_stage(count, wanted) for count in counts])


def _stage(count: int, wanted: list[str]) -> Stage:
    """Measure one cluster count. Starts in an empty namespace, so that all clusters are applied at once."""
    names = [f"bench-{number}" for number in range(count)]
    with namespace(f"{clusters.PREFIX}growth") as where:
        say(f"applying {count} clusters at once")
        started = time.monotonic()
        apply(*(clusters.small(where, name) for name in names))
        wait_for_all(where, names, "Available", clusters.is_available)
        available = time.monotonic() - started
        say(f"all clusters are Available after {available:.1f} s")
        idle: Idle | None = None
        changed: tuple[float, ...] = ()
        if {"idle", "changed_among_settled"} & set(wanted):
            wait_for_all(where, names, "settled", clusters.is_settled)
            time.sleep(_QUIET)
        if "idle" in wanted:
            idle = _idle(where, names)
        if count in figures.STAGES["changed_among_settled"] and "changed_among_settled" in wanted:
            changed = tuple(_change(where, names[-1 - number % count]) for number in range(10))
        say(f"deleting {count} clusters")
    return Stage(count, available, idle, changed)


def _idle(where: str, names: list[str]) -> Idle:
    operator = operator_pod.find(clusters=len(names))
    say(f"measuring the idle operator for {_IDLE_PERIOD:.0f} s, then one reconcile of each cluster")
    before, cpu, busy = operator.reconciles(), operator.group.cpu_seconds(), machine.cpu_times()
    started = time.monotonic()
    with usage.sampled(operator.group, every=0.5) as memory:
        time.sleep(_IDLE_PERIOD)
    cpu, passed = operator.group.cpu_seconds() - cpu, time.monotonic() - started
    reconciles = operator.reconciles().since(before).count
    busy_percent = machine.busy_percent(busy, machine.cpu_times())
    reconcile_cpu, peak = _reconcile_all(operator, where, names)
    return Idle(
        period_s=SETTLED,
        quiet_s=passed,
        quiet_cpu_s=cpu,
        quiet_reconciles=reconciles,
        reconcile_cpu_s=reconcile_cpu,
        memory_mib=mean(memory),
        peak_mib=max(*memory, peak),
        machine_busy_percent=busy_percent,
    )


def _reconcile_all(operator: Operator, where: str, names: list[str]) -> tuple[float, float]:
    """Reconcile all clusters at once; the CPU time of one reconcile, and the operator's peak memory."""
    connection = api()
    before, cpu = operator.reconciles().count, operator.group.cpu_seconds()
    with usage.sampled(operator.group, every=0.05) as memory:
        for name in names:
            connection.apply(clusters.annotated(where, name, str(time.time_ns())))
        wait_for(
            "a reconcile of every cluster",
            lambda: operator.reconciles().count >= before + len(names),
            timeout=60 + 6 * len(names),
            every=0.5,
        )
        time.sleep(_REST)
    return (operator.group.cpu_seconds() - cpu) / (operator.reconciles().count - before), max(memory)


def _change(where: str, name: str) -> float:
    """Seconds until the operator has reconciled a spec change of one cluster."""
    connection = api()
    resource = connection.get("EtcdCluster", where, name)
    if resource is None:
        raise SandboxError(
            f"EtcdCluster {where}/{name} not found: it was deleted during the measurement. Run the benchmark again."
        )

    def is_reconciled() -> bool:
        current = connection.get("EtcdCluster", where, name)
        return current is not None and clusters.is_observed(current)

    started = time.monotonic()
    after = connection.apply(clusters.with_changed_spec(resource))
    if after["metadata"]["generation"] == resource["metadata"]["generation"]:
        raise SandboxError(
            f"EtcdCluster {where}/{name} has the same generation after a spec change. Run the benchmark again."
        )
    wait_for(f"the spec change of {name} to be observed", is_reconciled, timeout=120, every=0.02)
    passed = time.monotonic() - started
    time.sleep(1)
    return passed
