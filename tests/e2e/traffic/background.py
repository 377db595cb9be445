"""A process that one command of a scenario starts and a later command ends. Its folder identifies it."""

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
    """Make an empty folder, and end the process of an earlier try."""
    if (running := pid(folder)) is not None:
        os.kill(running, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def start(module: str, folder: Path) -> None:
    """Run `python -m MODULE run FOLDER`, with its log in the folder."""
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
    process.returncode = 0  # it outlives this command, which does not wait for it


def end(folder: Path) -> None:
    """End the process; SandboxError with the end of its log if it does not run any more."""
    running = pid(folder)
    if running is None:
        log = (folder / "log").read_text() if (folder / "log").exists() else "it was never started"
        raise SandboxError(f"No process runs for {folder.name}: {log[-400:]}")
    os.kill(running, signal.SIGTERM)
    wait_for(f"the process for {folder.name} to end", lambda: pid(folder) is None, timeout=30, every=0.05)


def pid(folder: Path) -> int | None:
    """The pid while it runs; the arguments tell it from a later process with the same pid."""
    try:
        found = int((folder / "pid").read_text())
        arguments = Path(f"/proc/{found}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return found if str(folder).encode() in arguments else None
