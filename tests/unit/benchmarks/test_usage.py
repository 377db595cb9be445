"""The tests use directories with the layout of cgroup v1 and v2, because a machine has only one of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks import usage
from sandbox.errors import SandboxError

UID = "1d6c7c5e-0000-4000-8000-000000000001"
BELOW = f"etcdops/node-2/kubepods/burstable/pod{UID}"
MIB = 1024 * 1024


def _v1(root: Path) -> None:
    cpu, memory = root / "cpuacct" / BELOW, root / "memory" / BELOW
    for folder in (cpu, memory):
        folder.mkdir(parents=True)
    (cpu / "cpuacct.usage").write_text("2500000000\n")
    (memory / "memory.usage_in_bytes").write_text(f"{300 * MIB}\n")
    (memory / "memory.stat").write_text(f"cache 1\ninactive_file 7\ntotal_inactive_file {100 * MIB}\n")


def _v2(root: Path) -> None:
    folder = root / BELOW
    folder.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu memory\n")
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\n")
    (folder / "memory.current").write_text(f"{300 * MIB}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {100 * MIB}\n")


@pytest.mark.parametrize("make", [_v1, _v2])
def test_cpu_time_and_working_set_are_read_from_both_cgroup_versions(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path)
    group = usage.of_pod("node-2", UID, tmp_path)
    assert group.cpu_seconds() == pytest.approx(2.5)
    assert group.memory_mib() == pytest.approx(200)


def test_missing_cgroup_is_an_error(tmp_path: Path) -> None:
    _v1(tmp_path)
    with pytest.raises(SandboxError, match="No cgroup of pod missing"):
        usage.of_pod("node-2", "missing", tmp_path)


def test_memory_is_sampled_until_the_block_ends(tmp_path: Path) -> None:
    _v1(tmp_path)
    group = usage.of_pod("node-2", UID, tmp_path)
    with usage.sampled(group, every=0.01) as samples:
        (group.memory / "memory.usage_in_bytes").write_text(f"{500 * MIB}\n")
        end = time.monotonic() + 5
        while max(samples) < 300 and time.monotonic() < end:
            time.sleep(0.01)
    taken = len(samples)
    assert max(samples) == pytest.approx(400)
    time.sleep(0.05)
    assert len(samples) == taken
