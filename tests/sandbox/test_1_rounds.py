"""Starting and removing the sandbox leaves the machine unchanged. Runs first, because it needs the sandbox down."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from sandbox import cgroups, cluster, host, layout, network
from sandbox.errors import SandboxError
from sandbox.run import run


def _processes_elsewhere() -> list[str]:
    """Processes in another network namespace, as all processes of a sandbox are."""
    ours = Path("/proc/self/ns/net").readlink()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "ns/net").readlink() != ours:
                found.append((path / "cmdline").read_text(errors="replace"))
        except (FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended, or belongs to the machine
            continue
    return sorted(found)


def _empty_cgroups() -> list[str]:
    """Those that nothing runs in. Others come and go with what else runs on the machine."""
    found = []
    for path in Path("/sys/fs/cgroup").rglob("cgroup.procs"):
        try:
            if not path.read_text():
                found.append(str(path.parent))
        except OSError:  # it is gone, or of a kind that has no list of processes
            continue
    return sorted(found)


def _machine() -> dict[str, object]:
    """The state of the machine that the sandbox must not change."""
    return {
        "processes": _processes_elsewhere(),
        "links": sorted(link["ifname"] for link in json.loads(run(["ip", "-json", "link"]))),
        "routes": run(["ip", "route"]),
        "rules": run(["iptables-save"]).splitlines()[1:-1],
        "mounts": sorted(Path("/proc/self/mounts").read_text().splitlines()),
        "cgroups": _empty_cgroups(),
        "sysctls": {name: Path("/proc/sys", name).read_text() for name in cluster.KUBELET_SYSCTLS},
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
        "files": [path for path in ("/var/lib/kubelet", "/var/lib/cni", str(layout.STATE)) if Path(path).exists()],
    }


def test_starting_and_removing_three_times_leaves_the_machine_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    cluster.prepare()
    cluster.down()
    before = _machine()
    for number in (1, 2, 3):
        started = time.monotonic()
        cluster.up(3)
        elapsed = time.monotonic() - started
        with capsys.disabled():
            print(f"\nround {number}: up in {elapsed:.1f} s", end="")
        assert cluster.ready_nodes() == 3
        assert _processes_elsewhere() != before["processes"]
        cluster.up(3)  # again: nothing to do
        cluster.down()
        assert _machine() == before
    cluster.down()  # again: nothing to do


def test_sandbox_that_fails_to_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _machine()

    def fail(*_: object) -> None:
        raise SandboxError("no network")

    monkeypatch.setattr(network, "wire_host", fail)
    with pytest.raises(SandboxError, match="no network"):
        cluster.up(1)
    assert _machine() == before


def test_existing_interface_is_reported_and_kept() -> None:
    run(["ip", "link", "add", layout.UPLINK, "type", "bridge"])
    try:
        with pytest.raises(SandboxError, match=f"{layout.UPLINK} exists already"):
            cluster.up(1)
        assert Path("/sys/class/net", layout.UPLINK).exists()
    finally:
        run(["ip", "link", "delete", layout.UPLINK])


def test_dead_sandbox_is_replaced() -> None:
    """As after the machine lost power: the files are there, the processes are not."""
    cluster.up(1)
    for each in layout.hosts(1):
        host.stop(each.name)
    cluster.up(1)
    assert cluster.ready_nodes() == 1
    assert not cgroups.is_frozen("node-1")
    cluster.down()
