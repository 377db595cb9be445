from __future__ import annotations

from pathlib import Path

from benchmarks import results


def test_the_newest_is_the_last_by_name(tmp_path: Path) -> None:
    assert results.newest(tmp_path / "nothing") is None
    for name in ("20260102-000000.json", "20260101-000000.json"):
        results.write(tmp_path / "results" / name, {"idle": {"period_s": 60.0}})
    newest = results.newest(tmp_path / "results")
    assert newest is not None
    assert newest.name == "20260102-000000.json"
    assert results.read(newest) == {"idle": {"period_s": 60.0}}


def test_a_row() -> None:
    assert results.row("idle", {"period_s": 60.004, "cpu_percent_1": 0.7, "memory_mib_1": 123.4}) == (
        "idle                   period_s=60.0  cpu_percent_1=0.70  memory_mib_1=123"
    )


def test_of_several_runs_the_last_counts() -> None:
    runs = [{"time": "2026-01-02", "idle": {"s": 2.0}}, {"time": "2026-01-01", "idle": {"s": 1.0}, "settled": {}}]
    assert results.together(runs) == {"time": "2026-01-01, 2026-01-02", "idle": {"s": 2.0}, "settled": {}}
