"""Start and stop a host: one process tree in its own mount, network, PID and UTS namespaces."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from . import cgroups, layout
from .errors import SandboxError
from .init import Spec
from .run import run, wait_for

# setsid: the host keeps running after the command that started it.
_UNSHARE = ("setsid", "--fork", "unshare", "--mount", "--net", "--pid", "--uts", "--fork", "--kill-child")


def start(spec: Spec, wire: Callable[[int], None]) -> None:
    """Start a host; `wire` gets a pid in its namespaces and configures its network."""
    folder = _folder(spec.name)
    folder.mkdir(parents=True, exist_ok=True)
    Path(spec.log_dir).mkdir(parents=True, exist_ok=True)
    (folder / "spec.json").write_text(spec.dump())
    cgroups.make(spec.name)
    command = [*_UNSHARE, sys.executable, "-m", "sandbox.init", str(folder / "spec.json")]
    pipe = subprocess.PIPE
    with (
        (Path(spec.log_dir) / "init.log").open("a+") as log,
        subprocess.Popen(command, cwd=layout.REPOSITORY, stdin=pipe, stdout=pipe, stderr=log, text=True) as process,
    ):
        assert process.stdin
        assert process.stdout
        said = process.stdout.readline().split()
        if said[:1] != ["ready"]:
            log.seek(0)
            raise SandboxError(f"{spec.name} did not start: {log.read().strip()[-400:] or 'no output'}")
        pid = int(said[1])
        cgroups.enter(spec.name, pid)
        (folder / "pid").write_text(f"{pid} {_start_time(pid)}")
        wire(pid)
        process.stdin.write("go\n")


def stop(name: str) -> None:
    """Kill all processes of a host at once, like a power failure."""
    pid = find(name)
    if pid is None:
        return
    cgroups.thaw(name)  # a frozen process can't be killed
    os.kill(pid, signal.SIGKILL)
    wait_for(f"{name} to stop", lambda: find(name) is None, timeout=30, every=0.05)
    (_folder(name) / "pid").unlink(missing_ok=True)


def find(name: str) -> int | None:
    """The pid of a host's first process; None if the host is not running."""
    try:
        pid, started = (_folder(name) / "pid").read_text().split()
    except FileNotFoundError:
        return None
    return int(pid) if _start_time(int(pid)) == started else None


def inside(name: str, *argv: str | Path, timeout: float = 120) -> str:
    """Run a program in a host's mount and network namespaces."""
    pid = find(name)
    if pid is None:
        raise SandboxError(f"{name} is not running. See `make sandbox-status`.")
    return run(["nsenter", f"--target={pid}", "--mount", "--net", "--", *argv], timeout=timeout)


def _folder(name: str) -> Path:
    return layout.STATE / "hosts" / name


def _start_time(pid: int) -> str | None:
    """The start time of a process, which distinguishes it from a later one with the same pid."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]
