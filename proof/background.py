"""A process that one command of a scenario starts and a later one ends. It is known by its folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from sandbox import layout
from sandbox.errors import SandboxError
from sandbox.run import wait_for


def fresh(folder: Path) -> None:
    """An empty folder; a process of an earlier try ends."""
    if (running := pid(folder)) is not None:
        os.kill(running, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def start(module: str, folder: Path) -> None:
    """Run `python -m MODULE run FOLDER`, with its log in there."""
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, "run", folder],
            cwd=layout.REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (folder / "pid").write_text(str(process.pid))
    process.returncode = 0  # it outlives us: nobody here waits for it


def end(folder: Path) -> None:
    """Have it come to its end; one that runs no more is a SandboxError with its last words."""
    running = pid(folder)
    if running is None:
        log = (folder / "log").read_text() if (folder / "log").exists() else "it was never started"
        raise SandboxError(f"Nothing runs for {folder.name}: {log[-400:]}")
    os.kill(running, signal.SIGTERM)
    wait_for(f"what runs for {folder.name} to end", lambda: pid(folder) is None, timeout=30, every=0.05)


def pid(folder: Path) -> int | None:
    """The process while it runs; its arguments tell it from a later one with the same pid."""
    try:
        found = int((folder / "pid").read_text())
        arguments = Path(f"/proc/{found}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return found if str(folder).encode() in arguments else None
