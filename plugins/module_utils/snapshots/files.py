"""Snapshots in files. A file has its name only when it is complete, and is never overwritten."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .codec import Reader, Writer
from .errors import StoreError

_FLUSH_EVERY = 16 << 20


def delete(path: Path) -> bool:
    """Delete the file and what a killed writer left of it; True if there was anything."""
    found = [each for each in (path, _unfinished(path)) if each.exists()]
    for each in found:
        each.unlink(missing_ok=True)
    return bool(found)


@contextmanager
def reading(path: Path) -> Iterator[Reader]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise StoreError(f"{path} can't be read: {error.strerror}") from error


@contextmanager
def writing(path: Path) -> Iterator[Writer]:
    """A writer. The file appears under its name when the block succeeds; nothing is left when it fails."""
    unfinished = _unfinished(path)
    if path.exists():
        raise _exists_already(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb", buffering=0) as file:
            yield FlushedFile(file)
            os.fsync(file.fileno())
        _publish(unfinished, path)
    except OSError as error:
        raise _explained(path, error) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


class FlushedFile:
    """A file that is written to disk, and dropped from the page cache, as it grows: fsync at the end is then short.

    Reusing page cache is also faster than filling fresh pages, and leaves memory to the members on the same node.
    """

    def __init__(self, file: Any) -> None:  # unbuffered
        self._file = file
        self._size = self._flushed = 0
        self.name = file.name

    def write(self, data: bytes | memoryview) -> int:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._size += len(data)
        if self._size - self._flushed >= _FLUSH_EVERY:
            # Starts to write dirty pages, and drops those that are clean already.
            os.posix_fadvise(self._file.fileno(), 0, self._size, os.POSIX_FADV_DONTNEED)
            self._flushed = self._size
        return len(data)

    def flush(self) -> None:
        """Nothing is buffered."""


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.unfinished")


def _publish(unfinished: Path, path: Path) -> None:
    """Give a complete file its name, unless another file took the name meanwhile."""
    try:
        path.hardlink_to(unfinished)
    except FileExistsError:
        raise _exists_already(path) from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        unfinished.rename(path)  # a file system without hard links
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _exists_already(path: Path) -> StoreError:
    return StoreError(f"{path} exists already, and nothing is ever overwritten")


def _explained(path: Path, error: OSError) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(f"there is no room left for {path}; free space, or use a larger volume")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreError(f"{path} may not be written: {error.strerror}")
    return StoreError(f"{path} can't be written: {error.strerror or error}")
