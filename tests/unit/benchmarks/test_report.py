from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import backup, chart, figures, report, results
from benchmarks.backup import Taken
from benchmarks.figures import Cost, Idle, Membership, Stage, Upgrade, Writing
from sandbox.errors import SandboxError

IDLE = Idle(300, 45, 0.2, 0, 0.25, 150, 200, machine_busy_percent=40)
STAGES = [Stage(count, 2.0 * count, IDLE, (0.5,)) for count in (1, 10, 50)]
SETTLED = figures.settled_reconcile(Cost(1.5, 1.8, 200), Cost(0.25, 0.3, 160))
MEMBERSHIP = figures.membership(Membership((2.0,), (2.2,), (5.0,), (5.5,), (1.8,), (1.6,), (1.7,), (0.1,), (0.1,)))
WRITING = (Writing(0.2, 1),)
UPGRADE = figures.upgrade(Upgrade((2.0,), WRITING, WRITING, (12.0,), (7.0,), WRITING))
BACKUP = backup.figures(
    {method: [Taken(4.0, 1 << 30, 40 << 20, 0.02)] for method in ("etcdctl", "file", *backup._STORES)}
)
BY_HAND = {"by_hand_s": 3.0, "operator_s": 4.5, "ratio": 1.5}


def _results(**measures: Any) -> dict[str, Any]:
    machine = {"cores": 2, "cpu": "Some CPU", "memory_mib": 24000, "kernel": "6.1"}
    return {"machine": machine, "time": "2026-01-01T00:00:00Z", **measures}


COMPLETE = _results(
    settled_reconcile=SETTLED,
    apply_to_healthy=BY_HAND,
    ten_at_once=BY_HAND,
    membership=MEMBERSHIP,
    upgrade=UPGRADE,
    backup=BACKUP,
    **figures.growth(figures.STAGES, STAGES),
)


def test_complete_run_fills_every_row() -> None:
    page = report.table(COMPLETE)
    assert "not measured" not in page
    assert "| … wall time, stock against warm | 6.00 times | at least 5 |" in page
    assert "2 cores (Some CPU), 24000 MiB of memory, Linux 6.1" in page
    assert "![Growth curves](benchmarks.svg)" in page


def test_missing_results_are_marked_as_not_measured() -> None:
    page = report.table(_results(apply_to_healthy=BY_HAND))
    assert "| Apply to three healthy voters | 4.50 s |  |" in page
    assert "| Settled reconcile, warm runner | not measured | at most 0.3 |" in page
    assert "benchmarks.svg" not in page


def test_figure_has_the_values_of_all_rounds() -> None:
    page = report.table(_results(ten_at_once=figures.compared((2.0, 1.0, 4.0), (3.0, 9.0, 1.0))))
    assert "| Ten clusters at once | 3.00 s (3.00, 9.00, 1.00) |  |" in page


def test_curves_are_sorted_and_missing_measures_have_no_panel() -> None:
    assert report.curve({"s_50": 9.0, "s_10": 3.0, "per_cluster_s_10": 0.3, "ratio": 1.0}, "s") == (
        (10, 3.0),
        (50, 9.0),
    )
    panels = report.panels(COMPLETE)
    assert [panel.unit for panel in panels] == ["seconds", "% of a core", "MiB"]
    assert panels[0].curves[0].points == ((1, 2.0), (10, 20.0), (50, 100.0))
    assert chart.svg("all", panels)
    assert [panel.unit for panel in report.panels(_results(idle=COMPLETE["idle"]))] == ["% of a core", "MiB"]
    assert report.panels(_results()) == []


def test_only_text_between_the_markers_is_replaced() -> None:
    page = (report.DOCS / "benchmarks.md").read_text()
    filled = report.fill(page, "| one |")
    assert "| one |" in filled
    assert report.fill(filled, "| one |") == filled
    assert filled.partition(report.BEGIN)[0] == page.partition(report.BEGIN)[0]
    assert filled.partition(report.END)[2] == page.partition(report.END)[2]


def test_page_without_markers_is_an_error() -> None:
    with pytest.raises(SandboxError, match="no markers for the figures"):
        report.fill("# Benchmarks\n", "")


def test_page_describes_every_measure() -> None:
    page = (report.DOCS / "benchmarks.md").read_text()
    assert all(f"| `{row.measure}` |" in page for row in report.ROWS)


def test_missing_result_files_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="No results found"):
        report.write([])
    with pytest.raises(SandboxError, match="Cannot read"):
        report.write([tmp_path / "none.json"])


def test_page_and_chart_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (report.DOCS / "benchmarks.md").read_text()
    monkeypatch.setattr(report, "DOCS", tmp_path)
    (tmp_path / "benchmarks.md").write_text(page)
    source = tmp_path / "results.json"
    results.write(source, COMPLETE)
    report.write([source])
    assert "6.00 times" in (tmp_path / "benchmarks.md").read_text()
    assert (tmp_path / "benchmarks.svg").read_text().startswith("<svg")
