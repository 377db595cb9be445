"""Where snapshots are kept: a file, or an object in an S3-compatible store. Nothing is ever overwritten.

What is being written is not to be seen under its name before it is whole, and goes when writing fails.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .codec import Reader, StoreError, Writer
from .s3 import S3, Settings

_BEHIND = 16 << 20


@dataclass(frozen=True)
class Location:
    """A path, or s3://bucket/key."""

    bucket: str
    name: str  # the object's key, or the file's path

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.name}" if self.bucket else self.name


def location(text: str) -> Location:
    if not text.startswith("s3://"):
        return Location("", text)
    bucket, _, key = text.removeprefix("s3://").partition("/")
    if not bucket or not key:
        raise StoreError(f"{text} names no object; write it as s3://bucket/key")
    return Location(bucket, key)


class Hashed:
    """Counts and hashes what goes through."""

    def __init__(self, inner: Writer) -> None:
        self._write = inner.write
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes | memoryview) -> int:
        self._write(data)
        self._hash.update(data)
        self.size += len(data)
        return len(data)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


class HashedReader:
    """The same for reading."""

    def __init__(self, inner: Reader) -> None:
        self._inner = inner
        self._hash = hashlib.sha256()
        self.size = 0

    def read(self, limit: int = 1 << 20) -> bytes:
        data = self._inner.read(limit)
        self._hash.update(data)
        self.size += len(data)
        return data

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


@contextmanager
def writing(where: Location, s3: Settings, size: int | None = None) -> Iterator[Writer]:
    """Something to write to. It is there under its name when this ends well, and not at all when it doesn't.

    `size`, if it is known, saves a store work. BrokenError says that it is worth a try without.
    """
    if where.bucket:
        with S3(s3).writing(where.bucket, where.name, size) as upload:
            yield upload
    else:
        with _file(Path(where.name)) as file:
            yield file


@contextmanager
def reading(where: Location, s3: Settings) -> Iterator[Reader]:
    if where.bucket:
        with S3(s3).reading(where.bucket, where.name) as body:
            yield body
        return
    try:
        with Path(where.name).open("rb") as file:
            yield file
    except OSError as error:
        raise StoreError(f"{where.name} can't be read: {error.strerror}") from error


def exists(where: Location, s3: Settings) -> bool:
    return S3(s3).exists(where.bucket, where.name) if where.bucket else Path(where.name).exists()


def delete(where: Location, s3: Settings) -> bool:
    """Delete it and what a writer that was killed left; tells whether there was anything."""
    if where.bucket:
        return S3(s3).delete(where.bucket, where.name)
    path = Path(where.name)
    found = [each for each in (path, _unfinished(path)) if each.exists()]
    for each in found:
        each.unlink(missing_ok=True)
    return bool(found)


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.unfinished")


@contextmanager
def _file(path: Path) -> Iterator[Writer]:
    unfinished = _unfinished(path)
    if path.exists():
        raise StoreError(f"{path} exists already, and nothing is ever overwritten")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb", buffering=0) as file:
            yield WrittenBehind(file)
            os.fsync(file.fileno())
        _publish(unfinished, path)
    except OSError as error:
        raise _said(path, error) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


class WrittenBehind:
    """A file that goes to the disk, and out of memory, while it is written: little is left to wait for at the end.

    And the same pages serve again. Fresh ones cost more than the data, and the members on the same node need them.
    """

    def __init__(self, file: Any) -> None:  # unbuffered
        self._file = file
        self._size = self._behind = 0
        self.name = file.name

    def write(self, data: bytes | memoryview) -> int:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._size += len(data)
        if self._size - self._behind >= _BEHIND:
            # Has what is new written, and forgets what has been written.
            os.posix_fadvise(self._file.fileno(), 0, self._size, os.POSIX_FADV_DONTNEED)
            self._behind = self._size
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""


def _publish(unfinished: Path, path: Path) -> None:
    """Give a whole file its name, unless that was taken meanwhile."""
    try:
        path.hardlink_to(unfinished)
    except FileExistsError:
        raise StoreError(f"{path} exists already, and nothing is ever overwritten") from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        unfinished.rename(path)  # a file system without hard links
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _said(path: Path, error: OSError) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(f"there is no room left for {path}; make room, or use a larger volume")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreError(f"{path} may not be written: {error.strerror}")
    return StoreError(f"{path} can't be written: {error.strerror or error}")
