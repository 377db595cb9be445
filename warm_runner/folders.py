"""Removes folders of ansible-runner that no run has used for a while: whoever creates and deletes objects that cause
runs would fill the disk otherwise. A run makes its folder anew if it is missing.

The client holds a shared lock on the folder of its run, whether a server or the real program runs it.
"""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import time
from contextlib import suppress

_IDLE = 60  # seconds; what starts a run writes the folder's files just before it


def remove_idle(pattern: str, keep: int, trash: str) -> int:
    """Remove those beyond the `keep` that were used last; returns how many. `trash` is on the same file system."""
    shutil.rmtree(trash, ignore_errors=True)
    found = sorted(((_used_at(path), path) for path in glob.glob(pattern)), reverse=True)
    idle = [path for used, path in found[keep:] if time.time() - used > _IDLE]
    if not idle:
        return 0
    os.mkdir(trash, 0o700)
    removed = sum(_remove(path, f"{trash}/{number}") for number, path in enumerate(idle))
    shutil.rmtree(trash, ignore_errors=True)
    return removed


def _used_at(path: str) -> float:
    times = [0.0]
    for name in ("", "env/extravars", "artifacts"):
        with suppress(OSError):
            times.append(os.stat(f"{path}/{name}").st_mtime)
    return max(times)


def _remove(path: str, trash: str) -> bool:
    """Move it away, which is done at once, unless a run holds it; and its parent, if that is empty now."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if time.time() - _used_at(path) <= _IDLE:
            return False
        os.rename(path, trash)
    except OSError:
        return False
    finally:
        os.close(fd)
    with suppress(OSError):
        os.rmdir(os.path.dirname(path))
    return True
