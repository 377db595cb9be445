"""Store, read and delete snapshots, wherever they are. Nothing is ever overwritten.

A snapshot is not visible under its name before it is complete, and is removed when writing it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from . import files, object_store, s3, upload
from . import location as locations
from .bucket import Bucket
from .codec import Reader, Writer
from .location import Location
from .s3 import Settings

# How to open a bucket of each kind of object store. Another kind is one more entry here and in location.SCHEMES.
_OPEN: Mapping[str, Callable[[str, Settings], Bucket]] = {locations.S3: s3.open_bucket}


def writing(where: Location, settings: Settings, size: int) -> AbstractContextManager[Writer]:
    """A writer; `size` is about how much will be written at most."""
    if where.scheme:
        return upload.writing(_bucket(where, settings), where.name, size)
    return files.writing(Path(where.name))


def reading(where: Location, settings: Settings) -> AbstractContextManager[Reader]:
    if where.scheme:
        return object_store.reading(_bucket(where, settings), where.name)
    return files.reading(Path(where.name))


def exists(where: Location, settings: Settings) -> bool:
    if where.scheme:
        return object_store.exists(_bucket(where, settings), where.name)
    return Path(where.name).exists()


def delete(where: Location, settings: Settings) -> bool:
    """Delete the snapshot and what a killed writer left of it; True if there was anything."""
    if where.scheme:
        return object_store.delete(_bucket(where, settings), where.name)
    return files.delete(Path(where.name))


def _bucket(where: Location, settings: Settings) -> Bucket:
    return _OPEN[where.scheme](where.bucket, settings)
