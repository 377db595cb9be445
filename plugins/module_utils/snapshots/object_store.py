"""Snapshots as objects of an object store, through obstore. They are written by upload.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .bucket import Bucket
from .codec import Reader
from .errors import StoreError

_PIECE = 1 << 20


def exists(bucket: Bucket, key: str) -> bool:
    """Forbidden counts as no: credentials that may only write are not told whether an object exists."""
    return bucket.found(key) is True


def delete(bucket: Bucket, key: str) -> bool:
    """Delete the object and unfinished uploads of it; True if there was anything."""
    import obstore  # noqa: PLC0415  slow to import, and files don't need it

    there = bucket.found(key) is not False
    with bucket.explained(key):
        if there:
            obstore.delete(bucket.store, key)
        return bool(bucket.abort_uploads(key)) or there


@contextmanager
def reading(bucket: Bucket, key: str) -> Iterator[Reader]:
    import obstore  # noqa: PLC0415

    with bucket.explained(key):
        result = obstore.get(bucket.store, key)
        body = _Body(bucket, key, result)
    yield body


class _Body:
    """Reads an object, and notices when the store ends it early."""

    def __init__(self, bucket: Bucket, key: str, result: Any) -> None:
        self._bucket, self._key = bucket, key
        self._pieces = iter(result.stream(min_chunk_size=_PIECE))
        self._piece = memoryview(b"")
        self._left = result.meta["size"]

    def read(self, limit: int = _PIECE) -> bytes:
        while not self._piece:
            with self._bucket.explained(self._key):
                following = next(self._pieces, None)
            if following is None:
                if self._left:
                    raise StoreError(f"the store ended its answer {self._left} bytes early")
                return b""
            self._piece = memoryview(following)
        data, self._piece = bytes(self._piece[:limit]), self._piece[limit:]
        self._left -= len(data)
        return data
