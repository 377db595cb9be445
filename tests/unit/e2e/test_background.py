from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.errors import SandboxError
from sandbox.run import wait_for
from tests.e2e.traffic import background


def _log(folder: Path) -> str:
    return (folder / "log").read_text()


def test_process_runs_until_it_is_ended(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    background.fresh(folder)
    background.start("tests.unit.e2e.waiting", folder)
    wait_for("it to run", lambda: "waiting" in _log(folder), timeout=20, every=0.02)
    assert background.pid(folder) is not None
    background.end(folder)
    assert background.pid(folder) is None


def test_process_of_an_earlier_try_is_ended(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    background.fresh(folder)
    background.start("tests.unit.e2e.waiting", folder)
    wait_for("it to run", lambda: background.pid(folder) is not None, timeout=20, every=0.02)
    first = (folder / "pid").read_text()
    background.fresh(folder)
    assert list(folder.iterdir()) == []
    wait_for("it to end", lambda: not Path(f"/proc/{first}/cmdline").read_bytes(), timeout=20, every=0.02)


def test_missing_process_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="never started"):
        background.end(tmp_path / "none")


def test_failed_process_is_reported_with_its_log(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    background.fresh(folder)
    background.start("tests.unit.e2e.nowhere", folder)
    wait_for("it to fail", lambda: bool(_log(folder)) and background.pid(folder) is None, timeout=20, every=0.02)
    with pytest.raises(SandboxError, match="No module named"):
        background.end(folder)
