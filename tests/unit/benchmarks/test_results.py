from __future__ import annotations

from pathlib import Path

from benchmarks import results


def test_newest_file_is_the_last_by_name(tmp_path: Path) -> None:
    assert results.newest(tmp_path / "nothing") is None
    for name in ("20260102-000000.json", "20260101-000000.json"):
        results.write(tmp_path / "results" / name, {"idle": {"period_s": 60.0}})
    newest = results.newest(tmp_path / "results")
    assert newest is not None
    assert newest.name == "20260102-000000.json"
    assert results.read(newest) == {"idle": {"period_s": 60.0}}


def test_row_has_rounded_figures() -> None:
    assert results.row("idle", {"period_s": 60.004, "cpu_percent_1": 0.7, "memory_mib_1": 123.4}) == (
        "idle                   period_s=60.0  cpu_percent_1=0.70  memory_mib_1=123"
    )


def test_merge_prefers_the_latest_run() -> None:
    runs = [{"time": "2026-01-02", "idle": {"s": 2.0}}, {"time": "2026-01-01", "idle": {"s": 1.0}, "settled": {}}]
    assert results.merge(runs) == {"time": "2026-01-01, 2026-01-02", "idle": {"s": 2.0}, "settled": {}}
