"""How the operator's work grows with the number of clusters: 1, 10 and 50 of one member, made once for all measures."""

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

_MIB_EACH = 200  # of a member: its logs and data in memory, etcd itself, and what Kubernetes needs for a pod
_QUIET = 5.0  # seconds that let what has just settled come to rest
_WATCHED = 45.0
_REST = 1.0  # the operator hears of the end of a run a moment before its processes are gone


def measure(wanted: Iterable[str]) -> dict[str, Figures]:
    """The figures of those of figures.STAGES that are wanted."""
    wanted = list(wanted)
    counts = figures.stages(wanted)
    need, have = counts[-1] * _MIB_EACH, machine.available_mib()
    if have < need:
        raise SandboxError(f"{counts[-1]} clusters need about {need} MiB of memory, and this machine has {have} free.")
    return figures.growth(wanted, [_stage(count, wanted) for count in counts])


def _stage(count: int, wanted: list[str]) -> Stage:
    """Each stage starts from nothing: that all are applied at once is what is measured."""
    names = [f"bench-{number}" for number in range(count)]
    with namespace(f"{clusters.PREFIX}growth") as where:
        say(f"applying {count} at once")
        started = time.monotonic()
        apply(*(clusters.small(where, name) for name in names))
        wait_for_all(where, names, "Available", clusters.is_available)
        available = time.monotonic() - started
        say(f"all Available after {available:.1f} s")
        idle: Idle | None = None
        changed: tuple[float, ...] = ()
        if {"idle", "changed_among_settled"} & set(wanted):
            wait_for_all(where, names, "settled", clusters.is_settled)
            time.sleep(_QUIET)
        if "idle" in wanted:
            idle = _idle(where, names)
        if count in figures.STAGES["changed_among_settled"] and "changed_among_settled" in wanted:
            changed = tuple(_change(where, names[-1 - number % count]) for number in range(10))
        say(f"removing {count}")
    return Stage(count, available, idle, changed)


def _idle(where: str, names: list[str]) -> Idle:
    operator = operator_pod.at_work(clusters=len(names))
    say(f"watching the operator for {_WATCHED:.0f} s, then while it looks at each cluster")
    before, cpu, busy = operator.reconciles(), operator.group.cpu_seconds(), machine.cpu_times()
    started = time.monotonic()
    with usage.sampled(operator.group, every=0.5) as memory:
        time.sleep(_WATCHED)
    cpu, passed = operator.group.cpu_seconds() - cpu, time.monotonic() - started
    looks = operator.reconciles().since(before).count
    busy_percent = machine.busy_percent(busy, machine.cpu_times())
    look_cpu, peak = _looks(operator, where, names)
    return Idle(
        period_s=SETTLED,
        quiet_s=passed,
        quiet_cpu_s=cpu,
        quiet_looks=looks,
        look_cpu_s=look_cpu,
        memory_mib=mean(memory),
        peak_mib=max(*memory, peak),
        machine_busy_percent=busy_percent,
    )


def _looks(operator: Operator, where: str, names: list[str]) -> tuple[float, float]:
    """Have every cluster looked at, at once: the CPU time of one look, and the operator's peak memory."""
    connection = api()
    before, cpu = operator.reconciles().count, operator.group.cpu_seconds()
    with usage.sampled(operator.group, every=0.05) as memory:
        for name in names:
            connection.apply(clusters.touched(where, name, str(time.time_ns())))
        wait_for(
            "a look at every cluster",
            lambda: operator.reconciles().count >= before + len(names),
            timeout=60 + 6 * len(names),
            every=0.5,
        )
        time.sleep(_REST)
    return (operator.group.cpu_seconds() - cpu) / (operator.reconciles().count - before), max(memory)


def _change(where: str, name: str) -> float:
    """Seconds until the operator has dealt with a change of one cluster."""
    connection = api()
    resource = connection.get("EtcdCluster", where, name)
    if resource is None:
        raise SandboxError(f"EtcdCluster {where}/{name} is gone; don't touch what is measured.")

    def is_done() -> bool:
        now = connection.get("EtcdCluster", where, name)
        return now is not None and clusters.is_observed(now)

    started = time.monotonic()
    after = connection.apply(clusters.changed(resource))
    if after["metadata"]["generation"] == resource["metadata"]["generation"]:
        raise SandboxError(f"EtcdCluster {where}/{name} was not changed, so there is nothing to measure.")
    wait_for(f"the change of {name}", is_done, timeout=120, every=0.02)
    passed = time.monotonic() - started
    time.sleep(1)
    return passed
