"""A warm runner with its own folder of sockets, for tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
BIN = REPOSITORY / "warm_runner/bin"
PYTHON_BIN = Path(sys.executable).parent
IS_WARM = "'warm_runner.server' in __import__('sys').modules"


def wait_for(what: Callable[[], object], seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """A zombie is not alive."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@dataclass(frozen=True)
class Warm:
    """`programs` is the folder with the real programs."""

    home: Path
    programs: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def env(self, **more: str) -> dict[str, str]:
        return {
            "PATH": f"{BIN}:{self.programs}:{PYTHON_BIN}:/usr/bin:/bin",
            "HOME": str(self.home.parent),
            "LANG": "C.UTF-8",
            "WARM_RUNNER_HOME": str(self.home),
            "WARM_RUNNER_HELLO": "15",  # the machine may be busy
            **self.environ,
            **more,
        }

    def start(
        self, *argv: str | bytes, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.Popen[str]:
        """A client whose three streams are pipes."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(argv, env=self.env(**env or {}), cwd=cwd, text=True, start_new_session=True, **streams)  # type: ignore[call-overload,no-any-return]

    def run(
        self, *argv: str | bytes, stdin: str = "", env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        with self.start(*argv, env=env, cwd=cwd) as client:
            try:
                out, err = client.communicate(stdin, timeout=180)
            except subprocess.TimeoutExpired:
                client.kill()
                raise
        return subprocess.CompletedProcess(argv, client.returncode, out, err)

    def probe(self, code: str, *argv: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """Run some Python in the place of ansible-runner."""
        return self.run("ansible-runner", code, *argv, stdin=stdin, env=env)

    def is_warm(self, **env: str) -> bool:
        return self.probe(f"print({IS_WARM})", **env).stdout == "True\n"

    def servers(self) -> list[int]:
        """The running servers, oldest first."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if len(words) > 5 and words[1].endswith(b"/warm_runner") and words[-2].startswith(bytes(self.home)):
                    found.append(int(path.parent.name))
        # A run has its server's command line, too; but it leads a session without being the start of one of ours.
        return sorted(pid for pid in found if _parent(pid) not in found)

    def sockets(self) -> set[str]:
        """Those of servers that serve. A socket has another name, with a pid, before that."""
        found = self.home.glob("*") if self.home.exists() else ()
        return {path.name for path in found if "." not in path.name and path.is_socket()}

    def warm_up(self, *argv: str, **env: str) -> None:
        """Start a server for such a command."""
        before = self.sockets()
        self.run(*argv, env=env)
        wait_for(lambda: self.sockets() - before)
        for name in self.sockets() - before:
            self._wait_until_it_serves(name)

    def _wait_until_it_serves(self, name: str) -> None:
        # An idle one may have ended by now.
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client, suppress(OSError):
            client.settimeout(15)
            client.connect(str(self.home / name))
            client.recv(100)

    def stop(self) -> None:
        """Ends all servers, also one that was just starting and is found only by a later look."""
        told: set[int] = set()

        def all_ended() -> bool:
            running = set(self.servers())
            for pid in running - told:
                with suppress(OSError):
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGTERM)
            told.update(running)
            return not running

        wait_for(all_ended)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
