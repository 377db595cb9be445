"""CPU time and memory of a pod from its cgroup (v1 or v2), which costs the measured processes nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox import layout
from sandbox.errors import SandboxError

ROOT = Path("/sys/fs/cgroup")
_MIB = 1024 * 1024


@dataclass(frozen=True)
class Group:
    """Cgroup directories of a pod. With cgroup v2 both are the same."""

    cpu: Path
    memory: Path

    def cpu_seconds(self) -> float:
        """CPU time of all processes that have run in the cgroup."""
        if (self.cpu / "cpu.stat").exists() and not (self.cpu / "cpuacct.usage").exists():
            return _field(self.cpu / "cpu.stat", "usage_usec") / 1e6
        return int((self.cpu / "cpuacct.usage").read_text()) / 1e9

    def memory_mib(self) -> float:
        """The working set, as `kubectl top` shows it: without inactive file cache."""
        if (self.memory / "memory.current").exists():
            used, cache = int((self.memory / "memory.current").read_text()), "inactive_file"
        else:
            used, cache = int((self.memory / "memory.usage_in_bytes").read_text()), "total_inactive_file"
        return max(0, used - _field(self.memory / "memory.stat", cache)) / _MIB


def of_pod(node: str, uid: str, root: Path = ROOT) -> Group:
    """The cgroup of a pod on a node of the sandbox."""
    if (root / "cgroup.controllers").exists():
        found = _find(root, node, uid)
        return Group(found, found)
    return Group(_find(root / "cpuacct", node, uid), _find(root / "memory", node, uid))


@contextmanager
def sampled(group: Group, every: float) -> Iterator[list[float]]:
    """Samples of the memory of a cgroup in MiB, taken until the block ends."""
    samples = [group.memory_mib()]
    stop = threading.Event()

    def sample() -> None:
        while not stop.wait(every):
            samples.append(group.memory_mib())

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def _find(hierarchy: Path, node: str, uid: str) -> Path:
    top = hierarchy / layout.CGROUP / node
    found = next(top.rglob(f"pod{uid}"), None)
    if found is None:
        raise SandboxError(f"No cgroup of pod {uid} in {top}. Check that the pod runs in the sandbox of this machine.")
    return found


def _field(path: Path, name: str) -> int:
    return int(dict(line.split() for line in path.read_text().splitlines())[name])
