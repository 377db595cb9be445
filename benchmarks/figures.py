"""From what was seen to the figures that are kept; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

Figures = dict[str, float]

# Which numbers of clusters a measure needs. They are made once, however many measures look at them.
STAGES = {
    "fifty_at_once": (10, 50),
    "idle": (1, 10, 50),
    "changed_among_settled": (1, 50),
}


@dataclass(frozen=True)
class Cost:
    """What one reconcile takes."""

    wall_s: float
    cpu_s: float
    peak_mib: float  # of the operator's pod meanwhile


@dataclass(frozen=True)
class Idle:
    """The operator with nothing to do: left alone for a while, then made to look at each cluster once."""

    period_s: float  # between two looks at a settled cluster
    quiet_s: float
    quiet_cpu_s: float
    quiet_looks: float  # that fell into it all the same
    look_cpu_s: float  # of one look
    memory_mib: float  # left alone
    peak_mib: float
    machine_busy_percent: float  # all of the machine's cores are 100

    def cpu_percent(self, clusters: int) -> float:
        """Over a whole period, in which it looks at each cluster once."""
        quiet = max(0.0, self.quiet_cpu_s - self.quiet_looks * self.look_cpu_s) / self.quiet_s
        return 100 * (quiet + clusters * self.look_cpu_s / self.period_s)


@dataclass(frozen=True)
class Stage:
    """What was seen with one number of clusters, applied at once."""

    clusters: int
    available_s: float
    idle: Idle | None = None
    changed_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class Membership:
    """Seconds that each change of a cluster took, for each round, and the gaps between acknowledged writes."""

    pod_by_hand_s: tuple[float, ...]  # a deleted pod of a hand-made StatefulSet, until its replacement serves
    pod_s: tuple[float, ...]  # the same, of ours
    data_s: tuple[float, ...]  # claim and pod deleted, until three voters serve
    grow_s: tuple[float, ...]  # 3 → 5
    shrink_s: tuple[float, ...]  # 5 → 3
    leader_gap_by_hand_s: tuple[float, ...]
    leader_gap_s: tuple[float, ...]
    follower_gap_by_hand_s: tuple[float, ...]
    follower_gap_s: tuple[float, ...]


@dataclass(frozen=True)
class Writing:
    """What a writer saw while something was done to a cluster."""

    gap_s: float  # the longest between two acknowledged writes
    failed: int  # requests


@dataclass(frozen=True)
class Upgrade:
    """An upgrade of three members, for each round, beside pods of a hand-made StatefulSet that are deleted."""

    pod_by_hand_s: tuple[float, ...]  # a deleted pod of a follower, until its replacement serves
    follower_by_hand: tuple[Writing, ...]
    leader_by_hand: tuple[Writing, ...]
    upgrade_s: tuple[float, ...]  # from the edit of the version until every member serves with it
    roll_s: tuple[float, ...]  # from the end of the first pod on
    upgrade: tuple[Writing, ...]


def stages(wanted: Iterable[str]) -> list[int]:
    """The numbers of clusters that these measures need."""
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
    """The best of the rounds, as ratios to the pod made by hand; of gaps, the worst."""
    unit = min(seen.pod_by_hand_s)
    found: Figures = {"pod_by_hand_s": unit}
    for name, seconds in (
        ("pod", seen.pod_s),
        ("data", seen.data_s),
        ("grow", seen.grow_s),
        ("shrink", seen.shrink_s),
    ):
        found |= {f"{name}_s": min(seconds), f"{name}_ratio": min(seconds) / unit}
    return found | {
        "leader_gap_by_hand_s": max(seen.leader_gap_by_hand_s),
        "leader_gap_s": max(seen.leader_gap_s),
        "follower_gap_by_hand_s": max(seen.follower_gap_by_hand_s),
        "follower_gap_s": max(seen.follower_gap_s),
    }


def upgrade(seen: Upgrade) -> Figures:
    """The best of the rounds, as ratios to the pod made by hand; of gaps and failed requests, the worst."""
    unit, whole, roll = min(seen.pod_by_hand_s), min(seen.upgrade_s), min(seen.roll_s)
    found: Figures = {
        "pod_by_hand_s": unit,
        "roll_s": roll,
        "roll_ratio": roll / unit,
        "upgrade_s": whole,
        "upgrade_ratio": whole / unit,
    }
    for name, writings in (
        ("", seen.upgrade),
        ("follower_by_hand_", seen.follower_by_hand),
        ("leader_by_hand_", seen.leader_by_hand),
    ):
        found |= {f"{name}gap_s": max(each.gap_s for each in writings)}
        found |= {f"{name}failed": max(each.failed for each in writings)}
    return found | {"by_hand_failed": found["follower_by_hand_failed"] + found["leader_by_hand_failed"]}


def growth(wanted: Iterable[str], seen: list[Stage]) -> dict[str, Figures]:
    """The figures of each measure that was asked for."""
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
                f"look_cpu_s_{count}": idle.look_cpu_s,
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
