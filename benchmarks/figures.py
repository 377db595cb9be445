"""Calculates the figures of a result file from measurements. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

Figures = dict[str, float]

# Cluster counts that each measure needs. Measures that run together share the clusters.
STAGES = {
    "fifty_at_once": (10, 50),
    "idle": (1, 10, 50),
    "changed_among_settled": (1, 50),
}


@dataclass(frozen=True)
class Cost:
    """Resources that one reconcile uses."""

    wall_s: float
    cpu_s: float
    peak_mib: float  # of the operator pod during the measurement


@dataclass(frozen=True)
class Idle:
    """Resources of the operator with settled clusters: while idle, then during one reconcile of each cluster."""

    period_s: float  # between two reconciles of a settled cluster
    quiet_s: float
    quiet_cpu_s: float
    quiet_reconciles: float  # reconciles during the idle period
    reconcile_cpu_s: float  # of one reconcile
    memory_mib: float  # mean while idle
    peak_mib: float
    machine_busy_percent: float  # 100 is all cores of the machine

    def cpu_percent(self, clusters: int) -> float:
        """CPU over one resync period, in which each cluster is reconciled once."""
        quiet = max(0.0, self.quiet_cpu_s - self.quiet_reconciles * self.reconcile_cpu_s) / self.quiet_s
        return 100 * (quiet + clusters * self.reconcile_cpu_s / self.period_s)


@dataclass(frozen=True)
class Stage:
    """Measurements with one number of clusters, applied at once."""

    clusters: int
    available_s: float
    idle: Idle | None = None
    changed_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class Membership:
    """Duration of each membership change and gaps between acknowledged writes in seconds, one value per round."""

    # From the deletion of a pod until its replacement is healthy: without the operator, and with it.
    pod_by_hand_s: tuple[float, ...]
    pod_s: tuple[float, ...]
    data_s: tuple[float, ...]  # PVC and pod deleted, until three voters are healthy
    grow_s: tuple[float, ...]  # 3 → 5
    shrink_s: tuple[float, ...]  # 5 → 3
    leader_gap_by_hand_s: tuple[float, ...]
    leader_gap_s: tuple[float, ...]
    follower_gap_by_hand_s: tuple[float, ...]
    follower_gap_s: tuple[float, ...]


@dataclass(frozen=True)
class Writing:
    """Effect of an operation on a client that writes."""

    gap_s: float  # longest gap between two acknowledged writes
    failed: int  # requests


@dataclass(frozen=True)
class Upgrade:
    """Upgrade of three members, and pod deletions without the operator for comparison; one value per round."""

    pod_by_hand_s: tuple[float, ...]  # a follower's pod deleted, until its replacement is healthy
    follower_by_hand: tuple[Writing, ...]
    leader_by_hand: tuple[Writing, ...]
    upgrade_s: tuple[float, ...]  # from the change of spec.version until every member is healthy with it
    roll_s: tuple[float, ...]  # the same, from the deletion of the first pod
    upgrade: tuple[Writing, ...]


def rounds(name: str, values: Sequence[float]) -> Figures:
    """The median of all rounds, which is what users get, and every value."""
    return {name: median(values)} | _numbered(name, values)


def worst(name: str, values: Sequence[float]) -> Figures:
    """The largest of all rounds, and every value."""
    return {name: max(values)} | _numbered(name, values)


def _numbered(name: str, values: Sequence[float]) -> Figures:
    return {f"{name}_{number}": value for number, value in enumerate(values, 1)}


def compared(by_hand: Sequence[float], operator: Sequence[float]) -> Figures:
    return {
        **rounds("by_hand_s", by_hand),
        **rounds("operator_s", operator),
        "ratio": median(operator) / median(by_hand),
    }


def stages(wanted: Iterable[str]) -> list[int]:
    """The cluster counts that these measures need."""
    return sorted({count for name in wanted for count in STAGES[name]})


def settled_reconcile(stock: Cost, warm: Cost) -> Figures:
    return {
        "stock_s": stock.wall_s,
        "warm_s": warm.wall_s,
        "stock_cpu_s": stock.cpu_s,
        "warm_cpu_s": warm.cpu_s,
        "stock_peak_mib": stock.peak_mib,
        "warm_peak_mib": warm.peak_mib,
        "wall_ratio": stock.wall_s / warm.wall_s,
        "cpu_ratio": stock.cpu_s / warm.cpu_s,
        "peak_ratio": stock.peak_mib / warm.peak_mib,
    }


def membership(seen: Membership) -> Figures:
    """Durations with their ratios to pod_by_hand_s, and the longest gaps."""
    unit = median(seen.pod_by_hand_s)
    found = rounds("pod_by_hand_s", seen.pod_by_hand_s)
    for name, seconds in (
        ("pod", seen.pod_s),
        ("data", seen.data_s),
        ("grow", seen.grow_s),
        ("shrink", seen.shrink_s),
    ):
        found |= {**rounds(f"{name}_s", seconds), f"{name}_ratio": median(seconds) / unit}
    return {
        **found,
        **worst("leader_gap_by_hand_s", seen.leader_gap_by_hand_s),
        **worst("leader_gap_s", seen.leader_gap_s),
        **worst("follower_gap_by_hand_s", seen.follower_gap_by_hand_s),
        **worst("follower_gap_s", seen.follower_gap_s),
    }


def upgrade(seen: Upgrade) -> Figures:
    """Durations with their ratios to pod_by_hand_s, the longest gaps and the most failed requests."""
    unit = median(seen.pod_by_hand_s)
    found: Figures = {
        **rounds("pod_by_hand_s", seen.pod_by_hand_s),
        **rounds("roll_s", seen.roll_s),
        "roll_ratio": median(seen.roll_s) / unit,
        **rounds("upgrade_s", seen.upgrade_s),
        "upgrade_ratio": median(seen.upgrade_s) / unit,
    }
    for name, writings in (
        ("", seen.upgrade),
        ("follower_by_hand_", seen.follower_by_hand),
        ("leader_by_hand_", seen.leader_by_hand),
    ):
        found |= worst(f"{name}gap_s", [each.gap_s for each in writings])
        found |= worst(f"{name}failed", [each.failed for each in writings])
    return found | {"by_hand_failed": found["follower_by_hand_failed"] + found["leader_by_hand_failed"]}


def growth(wanted: Iterable[str], seen: list[Stage]) -> dict[str, Figures]:
    """The figures of each requested measure."""
    measures = {"fifty_at_once": _at_once, "idle": _idle, "changed_among_settled": _changed}
    by_count = {stage.clusters: stage for stage in seen}
    return {name: measures[name](by_count) for name in wanted}


def _at_once(seen: dict[int, Stage]) -> Figures:
    found: Figures = {}
    for count, stage in seen.items():
        found |= {f"s_{count}": stage.available_s, f"per_cluster_s_{count}": stage.available_s / count}
    return found | {"ratio": found["per_cluster_s_50"] / found["per_cluster_s_10"]}


def _idle(seen: dict[int, Stage]) -> Figures:
    found: Figures = {}
    for count, stage in seen.items():
        idle = stage.idle
        if idle is not None:
            found |= {
                "period_s": idle.period_s,
                f"cpu_percent_{count}": idle.cpu_percent(count),
                f"look_cpu_s_{count}": idle.reconcile_cpu_s,
                f"memory_mib_{count}": idle.memory_mib,
                f"peak_mib_{count}": idle.peak_mib,
                f"machine_busy_percent_{count}": idle.machine_busy_percent,
            }
    return found | {
        "cpu_ratio": found["cpu_percent_50"] / found["cpu_percent_10"],
        "memory_ratio": found["memory_mib_50"] / found["memory_mib_10"],
    }


def _changed(seen: dict[int, Stage]) -> Figures:
    alone, among = seen[1].changed_s, seen[50].changed_s
    return {
        "alone_s": median(alone),
        "among_50_s": median(among),
        "alone_worst_s": max(alone),
        "among_50_worst_s": max(among),
        "ratio": median(among) / median(alone),
        "worst_ratio": max(among) / max(alone),
    }
