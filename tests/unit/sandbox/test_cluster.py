from __future__ import annotations

from dataclasses import asdict
from json import dumps
from pathlib import Path

import pytest

from sandbox import cluster, layout
from sandbox.cluster import Record


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(layout, "state", lambda number="1": tmp_path / number)
    return tmp_path


def test_second_sandbox_remembers_the_settings_from_before_the_first(states: Path) -> None:
    (states / "2").mkdir()
    (states / "2/record.json").write_text(dumps(asdict(Record(3, {"vm/panic_on_oom": "7"}, []))))
    assert cluster._sysctls() == {"vm/panic_on_oom": "7"}


def test_only_sandbox_reads_the_settings_of_the_machine(states: Path) -> None:
    assert set(cluster._sysctls()) == set(cluster.KUBELET_SYSCTLS)


def test_folders_that_the_machine_had_before_are_not_removed(
    states: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kubelet").mkdir()
    monkeypatch.setattr(layout, "PRIVATE", (tmp_path / "kubelet", tmp_path / "cni"))
    assert cluster._made() == [str(tmp_path / "cni")]
    (states / "2").mkdir()
    (states / "2/record.json").write_text(dumps(asdict(Record(3, {}, [], ["/made/by/the/first"]))))
    assert cluster._made() == ["/made/by/the/first"]
