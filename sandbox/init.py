"""The first process of a host, in its own namespaces: it prepares the mounts and keeps the host's programs running.

host.py starts it as `unshare … python -m sandbox.init SPEC`. It prints "ready" and its pid on the machine, waits for
"go" (then the network is configured), and never returns: killing it stops the host.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from . import layout
from .configs import Program

_RESTART_AFTER = 1.0  # seconds


@dataclass(frozen=True)
class Spec:
    """The name, programs and files of a host."""

    name: str
    programs: list[Program]
    log_dir: str
    resolv_conf: str

    def dump(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def load(cls, text: str) -> Spec:
        value = json.loads(text)
        programs = [
            Program(**p | {"argv": tuple(p["argv"]), "after": tuple(p["after"]) if p["after"] else None})
            for p in value["programs"]
        ]
        return cls(value["name"], programs, value["log_dir"], value["resolv_conf"])


def main() -> None:
    spec = Spec.load(Path(sys.argv[1]).read_text())
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    pid = Path("/proc/self").readlink()  # /proc is still that of the machine
    prepare(spec)
    print("ready", pid, flush=True)
    if sys.stdin.readline().strip() != "go":
        sys.exit("the network was not configured")
    supervise(spec)


def prepare(spec: Spec) -> None:
    """Set up mounts and the host name, without effect on the machine's own mount namespace."""
    for command in (
        ["mount", "--make-rprivate", "/"],
        ["mount", "-t", "proc", "proc", "/proc"],
        *(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", str(path)] for path in (Path("/run"), *layout.PRIVATE)),
        ["mount", "--make-rshared", "/"],  # mounts of the kubelet must propagate to containers
        ["mount", "--bind", spec.resolv_conf, "/etc/resolv.conf"],
    ):
        subprocess.run(command, check=True)
    Path("/run/lock").mkdir()
    socket.sethostname(spec.name)


def supervise(spec: Spec) -> None:
    """Start each program when its dependencies answer, and restart it a second after it ended."""
    due = {program.name: 0.0 for program in spec.programs}
    running: dict[int, str] = {}
    while True:
        now = time.monotonic()
        for program in spec.programs:
            if program.name in due and due[program.name] <= now and _may_start(program):
                del due[program.name]
                running[_start(program, Path(spec.log_dir))] = program.name
        for pid in _ended():
            if name := running.pop(pid, None):
                due[name] = time.monotonic() + _RESTART_AFTER
        signal.sigtimedwait([signal.SIGCHLD], 0.2 if due else 3600)


def _may_start(program: Program) -> bool:
    return (program.after_file is None or Path(program.after_file).exists()) and _answers(program.after)


def _answers(address: tuple[str, int] | None) -> bool:
    if address is None:
        return True
    try:
        socket.create_connection(address, timeout=0.5).close()
    except OSError:
        return False
    return True


def _start(program: Program, log_dir: Path) -> int:
    with (log_dir / f"{program.name}.log").open("ab") as log:
        process = subprocess.Popen(
            program.argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_unblock_signals,  # noqa: PLW1509  this process has no threads
        )
    return process.pid


def _unblock_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def _ended() -> list[int]:
    """Reap every child that ended, including orphans."""
    pids: list[int] = []
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return pids
        if pid == 0:
            return pids
        pids.append(pid)


if __name__ == "__main__":
    main()
