"""One cgroup per host, for its pods and for freezing the whole host; cgroup v1 and v2."""

from __future__ import annotations

import errno
import time
from pathlib import Path

from . import layout

_ROOT = Path("/sys/fs/cgroup")


def _is_v2() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


def _hierarchies() -> list[Path]:
    if _is_v2():
        return [_ROOT]
    return sorted(path for path in _ROOT.iterdir() if path.is_dir() and (path / "cgroup.procs").exists())


def make(host: str) -> None:
    """Create the host's cgroup in every hierarchy, ready for a kubelet below it."""
    for hierarchy in _hierarchies():
        for group in (hierarchy / layout.CGROUP, hierarchy / layout.CGROUP / host):
            group.mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):  # a new v1 cpuset is empty, and nothing can run in it
                if not _is_v2() and (group / name).exists():
                    (group / name).write_text((group.parent / name).read_text())
            _prefer(group)
            if _is_v2():
                controllers = (group.parent / "cgroup.controllers").read_text().split()
                (group.parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def _prefer(group: Path) -> None:
    """Pods get the CPU before the tests do: members that starve would elect leaders."""
    weights = {"cpu.weight": "1000"} if _is_v2() else {"cpu.shares": "10240"}
    for name, value in weights.items():
        if (group / name).exists():
            (group / name).write_text(value)


def enter(host: str, pid: int) -> None:
    """Move a process, and the processes that it starts from now on, into the cgroup that `freeze` stops."""
    group = _freezer(host)
    if _is_v2():  # only leaf cgroups may contain processes
        group = group / "system"
        group.mkdir(exist_ok=True)
    (group / "cgroup.procs").write_text(str(pid))


def _freezer(host: str) -> Path:
    return (_ROOT if _is_v2() else _ROOT / "freezer") / layout.CGROUP / host


def freeze(host: str) -> None:
    _set_frozen(host, True)


def thaw(host: str) -> None:
    _set_frozen(host, False)


def is_frozen(host: str) -> bool:
    name, frozen = ("cgroup.freeze", "1") if _is_v2() else ("freezer.self_freezing", "1")
    path = _freezer(host) / name
    return path.exists() and path.read_text().strip() == frozen


def _set_frozen(host: str, frozen: bool) -> None:
    group = _freezer(host)
    if not group.exists():
        return
    if _is_v2():
        (group / "cgroup.freeze").write_text("1" if frozen else "0")
    else:
        (group / "freezer.state").write_text("FROZEN" if frozen else "THAWED")


def remove(host: str | None = None) -> None:
    """Remove a host's cgroups, or those of the whole sandbox; their processes must have ended."""
    for hierarchy in _hierarchies():
        top = hierarchy / layout.CGROUP
        if host is not None:
            top = top / host
        if top.is_dir():
            groups = sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True)
            for group in [*groups, top]:
                _remove_group(group)


def _remove_group(group: Path) -> None:
    """A group is busy for a moment after its last process was killed."""
    for _ in range(50):
        try:
            group.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            time.sleep(0.1)
    group.rmdir()
