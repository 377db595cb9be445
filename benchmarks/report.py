"""Writes the results of a run into docs/: the chart of the growth curves and the table of figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SandboxError

from . import chart, results
from .chart import Curve, Panel
from .figures import Figures
from .results import Results

DOCS = Path(__file__).parent.parent / "docs"
BEGIN = "<!-- figures: written by `python -m benchmarks chart`; don't edit -->"
END = "<!-- end of the figures -->"
_AIM = "#b35900"


@dataclass(frozen=True)
class Row:
    what: str
    measure: str
    key: str
    unit: str
    aim: str = ""


ROWS = (
    Row("Settled reconcile, stock runner", "settled_reconcile", "stock_s", "s"),
    Row("Settled reconcile, warm runner", "settled_reconcile", "warm_s", "s", "at most 0.3"),
    Row("… wall time, stock against warm", "settled_reconcile", "wall_ratio", "times", "at least 5"),
    Row("… CPU time, stock", "settled_reconcile", "stock_cpu_s", "s"),
    Row("… CPU time, warm", "settled_reconcile", "warm_cpu_s", "s"),
    Row("… CPU time, stock against warm", "settled_reconcile", "cpu_ratio", "times", "at least 5"),
    Row("… peak memory of the pod, stock", "settled_reconcile", "stock_peak_mib", "MiB"),
    Row("… peak memory of the pod, warm", "settled_reconcile", "warm_peak_mib", "MiB"),
    Row("Apply to three healthy voters", "apply_to_healthy", "operator_s", "s"),
    Row("… against a hand-made StatefulSet", "apply_to_healthy", "ratio", "times", "at most 1.6"),
    Row("Ten clusters at once", "ten_at_once", "operator_s", "s"),
    Row("… against hand-made StatefulSets", "ten_at_once", "ratio", "times", "at most 2"),
    Row("Pod of a hand-made StatefulSet deleted, until healthy (P)", "membership", "pod_by_hand_s", "s"),
    Row("Pod deleted, data kept, until healthy", "membership", "pod_s", "s"),
    Row("… against P", "membership", "pod_ratio", "times", "at most 1.2"),
    Row("Data lost, until three healthy voters", "membership", "data_s", "s"),
    Row("… against P", "membership", "data_ratio", "times", "at most 3"),
    Row("3 → 5 members", "membership", "grow_s", "s"),
    Row("… against P", "membership", "grow_ratio", "times", "at most 3"),
    Row("5 → 3 members", "membership", "shrink_s", "s"),
    Row("… against P", "membership", "shrink_ratio", "times", "at most 1"),
    Row("Longest gap between writes, leader killed", "membership", "leader_gap_s", "s", "one election: 1 to 2"),
    Row("… of a hand-made StatefulSet", "membership", "leader_gap_by_hand_s", "s"),
    Row("Longest gap between writes, follower killed", "membership", "follower_gap_s", "s", "under 0.2"),
    Row("… of a hand-made StatefulSet", "membership", "follower_gap_by_hand_s", "s"),
    Row("Rolling upgrade of three members", "upgrade", "roll_s", "s"),
    Row("… against P of the same run", "upgrade", "roll_ratio", "times", "at most 4"),
    Row("… from the change of spec.version, with checks and snapshot", "upgrade", "upgrade_s", "s"),
    Row("… against P", "upgrade", "upgrade_ratio", "times"),
    Row("Longest gap between writes, upgrade", "upgrade", "gap_s", "s", "one leadership transfer: under 1"),
    Row("… by hand: a follower's pod deleted", "upgrade", "follower_by_hand_gap_s", "s"),
    Row("… by hand: the leader's pod deleted", "upgrade", "leader_by_hand_gap_s", "s"),
    Row("Failed requests, upgrade", "upgrade", "failed", "requests", "at most as many as by hand"),
    Row("… by hand: pods of one follower and the leader deleted", "upgrade", "by_hand_failed", "requests"),
    Row("Snapshot of 1 GiB, etcdctl", "backup", "etcdctl_mb_per_s", "MB/s"),
    Row("… to a file", "backup", "file_mb_per_s", "MB/s"),
    Row("… against etcdctl", "backup", "file_ratio", "times", "at least 1.3"),
    Row("… to S3", "backup", "s3_mb_per_s", "MB/s"),
    Row("… against etcdctl", "backup", "s3_ratio", "times", "at least 0.7"),
    Row("… to S3, store without MD5", "backup", "s3_without_md5_mb_per_s", "MB/s"),
    Row("… against etcdctl", "backup", "s3_without_md5_ratio", "times", "at least 0.7"),
    Row("… memory of the module", "backup", "s3_memory_mib", "MiB", "under 128, with ansible-playbook"),
    Row("… p99 of concurrent writes, etcdctl", "backup", "etcdctl_write_p99_ms", "ms"),
    Row("… p99 of concurrent writes, to a file", "backup", "file_write_p99_ms", "ms"),
    Row("… p99 of concurrent writes, to S3", "backup", "s3_write_p99_ms", "ms"),
    Row("10 clusters at once, until all are Available", "fifty_at_once", "s_10", "s"),
    Row("50 clusters at once, until all are Available", "fifty_at_once", "s_50", "s"),
    Row("… time per cluster, 50 against 10", "fifty_at_once", "ratio", "times", "at most 1"),
    Row("Operator with 1 settled cluster, CPU", "idle", "cpu_percent_1", "% of a core"),
    Row("Operator with 10 settled clusters, CPU", "idle", "cpu_percent_10", "% of a core"),
    Row("Operator with 50 settled clusters, CPU", "idle", "cpu_percent_50", "% of a core", "under 5"),
    Row("Operator with 1 settled cluster, memory", "idle", "memory_mib_1", "MiB"),
    Row("Operator with 10 settled clusters, memory", "idle", "memory_mib_10", "MiB"),
    Row("Operator with 50 settled clusters, memory", "idle", "memory_mib_50", "MiB", "under 400"),
    Row("… peak memory", "idle", "peak_mib_50", "MiB", "under 400"),
    Row("… CPU of the whole machine", "idle", "machine_busy_percent_50", "% of all cores"),
    Row("Spec change, only cluster", "changed_among_settled", "alone_s", "s"),
    Row("Spec change, one of 50 settled clusters", "changed_among_settled", "among_50_s", "s"),
    Row("… against the only cluster", "changed_among_settled", "ratio", "times", "about 1"),
    Row("… slowest", "changed_among_settled", "among_50_worst_s", "s"),
)


def write(paths: list[Path]) -> None:
    """Write docs/benchmarks.svg and the figures in docs/benchmarks.md from result files."""
    if not paths:
        raise SandboxError("No results found. Run make bench first.")
    found = results.merge([_read(path) for path in paths])
    page = DOCS / "benchmarks.md"
    page.write_text(fill(page.read_text(), table(found)))
    print(f"Figures written to {page}.")
    if shown := panels(found):
        picture = DOCS / "benchmarks.svg"
        picture.write_text(chart.svg("How the operator grows with the number of clusters", shown))
        print(f"Chart written to {picture}.")


def _read(path: Path) -> Results:
    try:
        return results.read(path)
    except (OSError, ValueError) as error:
        raise SandboxError(f"Cannot read {path} as a result file: {error}") from error


def fill(page: str, figures: str) -> str:
    """The page with these figures between the markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SandboxError(f"docs/benchmarks.md has no markers for the figures. Restore the lines {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n{figures}\n{END}{after}"


def table(found: Results) -> str:
    machine = found["machine"]
    where = ", ".join(
        [
            f"{machine.get('cores')} cores" + (f" ({machine['cpu']})" if "cpu" in machine else ""),
            *([f"{machine['memory_mib']} MiB of memory"] if "memory_mib" in machine else []),
            f"Linux {machine.get('kernel')}",
        ]
    )
    lines = [f"Measured {found['time']} on {where}.", ""]
    if panels(found):
        lines += ["![Growth curves](benchmarks.svg)", ""]
    lines += ["| what | figure | aim |", "|---|---|---|"]
    for row in ROWS:
        lines.append(f"| {row.what} | {_figure(found.get(row.measure, {}), row)} | {row.aim} |")
    return "\n".join(lines)


def _figure(found: Figures, row: Row) -> str:
    """A figure with its unit, and the values of all rounds in their order."""
    if row.key not in found:
        return "not measured"
    every = [found[key] for number in range(1, 1 + len(found)) if (key := f"{row.key}_{number}") in found]
    values = f" ({', '.join(map(results.short, every))})" if every else ""
    return f"{results.short(found[row.key])} {row.unit}{values}"


def panels(found: Results) -> list[Panel]:
    """Panels of the chart. Measures without results are left out."""
    shown = []
    if times := found.get("fifty_at_once"):
        ten = times["s_10"]
        curves = (
            Curve("measured", curve(times, "s")),
            Curve("the time per cluster of 10", ((0, 0), (50, 5 * ten)), _AIM, dashed=True),
        )
        shown.append(Panel("Applied at once until Available", "seconds", curves))
    if idle := found.get("idle"):
        cpu = Curve("measured", curve(idle, "cpu_percent"))
        shown.append(Panel("Operator's CPU, all settled", "% of a core", (cpu, _aim(5, "aim for 50: under 5 %"))))
        memory = (
            Curve("mean", curve(idle, "memory_mib")),
            Curve("peak", curve(idle, "peak_mib"), "#7a4fbf"),
            _aim(400, "aim for 50: under 400 MiB"),
        )
        shown.append(Panel("Operator's memory, all settled", "MiB", memory))
    return shown


def curve(figures: Figures, prefix: str) -> tuple[tuple[float, float], ...]:
    """Points (number of clusters, figure) from keys such as `s_10`."""
    found = {key.removeprefix(f"{prefix}_"): value for key, value in figures.items() if key.startswith(f"{prefix}_")}
    return tuple(sorted((int(count), value) for count, value in found.items() if count.isdigit()))


def _aim(value: float, label: str) -> Curve:
    return Curve(label, ((0, value), (50, value)), _AIM, dashed=True)
