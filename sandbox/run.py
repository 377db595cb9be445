"""Run programs, wait, and print progress."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .errors import SandboxError

_started = time.monotonic()


def say(text: str) -> None:
    """Print a line of progress with the time since the start."""
    elapsed = int(time.monotonic() - _started)
    print(f"[{elapsed // 60:02d}:{elapsed % 60:02d}] {text}", file=sys.stderr, flush=True)


def run(argv: Sequence[str | Path], *, stdin: str | None = None, timeout: float = 120) -> str:
    """Run a program and return its output. A failure is a SandboxError with the end of its output."""
    command = [str(part) for part in argv]
    try:
        done = subprocess.run(command, input=stdin, text=True, capture_output=True, timeout=timeout, check=False)
    except FileNotFoundError:
        raise SandboxError(f"{command[0]} is not on this machine. Install it and try again.") from None
    except subprocess.TimeoutExpired:
        raise SandboxError(f"`{' '.join(command)}` did not end within {timeout:.0f} s.") from None
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip() or "no output")[-600:]
        raise SandboxError(f"`{' '.join(command)}` failed ({done.returncode}): {words}")
    return done.stdout


def wait_for(what: str, check: Callable[[], bool], *, timeout: float, every: float = 0.2) -> None:
    """Wait until `check` is true."""
    end = time.monotonic() + timeout
    while not check():
        if time.monotonic() > end:
            raise SandboxError(f"Timed out after {timeout:.0f} s: waiting for {what}.")
        time.sleep(every)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock, so that two builds of one thing wait for each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
