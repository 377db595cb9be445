"""Counting and hashing of what is written or read."""

from __future__ import annotations

import hashlib

from .codec import Reader, Writer


class HashedWriter:
    """Passes data on to a writer, and knows its size and sha256."""

    def __init__(self, target: Writer) -> None:
        self._write = target.write
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
    """Reads from a reader, and knows the size and sha256 of what was read."""

    def __init__(self, source: Reader) -> None:
        self._source = source
        self._hash = hashlib.sha256()
        self.size = 0

    def read(self, limit: int = 1 << 20) -> bytes:
        data = self._source.read(limit)
        self._hash.update(data)
        self.size += len(data)
        return data

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()
