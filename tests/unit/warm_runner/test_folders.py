"""Folders of ansible-runner that nothing uses any more are removed; one that a run uses never is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from warm_runner import folders

from .warm import Warm, wait_for

Fresh = Callable[..., Warm]
_WAITS = "import sys; print('begun', flush=True); sys.stdin.read()"


def _used(folder: Path, seconds_ago: float) -> Path:
    """A folder as ansible-operator writes it."""
    for name in ("env", "artifacts/1"):
        (folder / name).mkdir(parents=True)
    (folder / "env/extravars").write_text("{}")
    then = time.time() - seconds_ago
    for path in (folder / "env/extravars", folder / "artifacts", folder):
        os.utime(path, (then, then))
    return folder


def _names(root: Path) -> set[str]:
    return {f"{path.parent.name}/{path.name}" for path in root.glob("*/*")}


def test_folders_that_were_used_last_are_kept(tmp_path: Path) -> None:
    root, trash = tmp_path / "runner", str(tmp_path / "removed")
    for number in range(6):
        _used(root / f"ns{number}" / "a", 100 + number)
    _used(root / "ns0" / "now", 0)
    assert folders.remove_idle(f"{root}/*/*", 3, trash) == 4
    assert _names(root) == {"ns0/now", "ns0/a", "ns1/a"}
    assert sorted(path.name for path in root.iterdir()) == ["ns0", "ns1"]
    assert not Path(trash).exists()
    assert folders.remove_idle(f"{root}/*/*", 3, trash) == 0


def test_folder_that_was_just_used_is_kept_however_many_there_are(tmp_path: Path) -> None:
    root = tmp_path / "runner"
    for number in range(5):
        _used(root / "ns" / str(number), 10)
    assert folders.remove_idle(f"{root}/*/*", 0, str(tmp_path / "removed")) == 0


@pytest.mark.parametrize("mode", ["on", "off"])
def test_folder_of_a_run_is_kept_until_the_run_ends(fresh: Fresh, tmp_path: Path, mode: str) -> None:
    root, trash = tmp_path / "runner", str(tmp_path / "removed")
    folder = _used(root / "ns" / "a", 1000)
    runner = fresh(WARM_RUNNER_FOLDERS=f"{root}/*/*", WARM_RUNNER=mode)
    program = tmp_path / "programs" / "ansible-runner"
    program.parent.mkdir()
    program.write_text((runner.programs / "ansible-runner").read_text().replace("sys.argv[1]", repr(_WAITS)))
    program.chmod(0o755)
    real = Warm(runner.home, program.parent, runner.environ)
    if mode == "on":
        real.warm_up("ansible-runner", "run", str(folder))
    with real.start("ansible-runner", "run", str(folder)) as client:
        assert client.stdout
        assert client.stdin
        assert client.stdout.readline() == "begun\n"
        assert folders.remove_idle(f"{root}/*/*", 0, trash) == 0
        client.stdin.close()
        client.wait(10)
    assert folders.remove_idle(f"{root}/*/*", 0, trash) == 1
    assert not _names(root)


def test_server_removes_folders_while_it_has_runs(fresh: Fresh, tmp_path: Path) -> None:
    root = tmp_path / "runner"
    for number in range(5):
        _used(root / "ns" / str(number), 1000 + number)
    runner = fresh(WARM_RUNNER_FOLDERS=f"{root}/*/*", WARM_RUNNER_KEEP="2", WARM_RUNNER_TIDY="0")
    runner.warm_up("ansible-runner", "pass")
    assert runner.is_warm()
    wait_for(lambda: _names(root) == {"ns/0", "ns/1"})
    assert runner.is_warm()
    assert not any(path.read_text() for path in runner.home.glob("*.log"))


def test_number_of_artifacts_is_that_of_the_environment(fresh: Fresh) -> None:
    say = "import sys; print(sys.argv[2:])"
    asked = ("--rotate-artifacts", "999999", "-i", "1")
    limited = fresh(WARM_RUNNER_ARTIFACTS="3").run("ansible-runner", say, *asked)
    assert limited.stdout == "['--rotate-artifacts', '3', '-i', '1']\n"
    assert fresh().run("ansible-runner", say, *asked).stdout == "['--rotate-artifacts', '999999', '-i', '1']\n"
