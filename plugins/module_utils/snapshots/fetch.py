"""Fetch a stored snapshot: read, verify, decrypt and decompress it into a plain file."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import codec, store, transfer
from .errors import StoreError
from .hashing import HashedReader
from .location import location
from .s3 import Settings


@dataclass(frozen=True)
class Expected:
    """What the caller knows of a snapshot: the sha256 of what is stored, and how many bytes the plain one may have."""

    sha256: str | None = None
    max_size: int | None = None


def fetch(
    source: str,
    target: Path,
    settings: Settings,
    identities: Sequence[str] = (),
    expected: Expected | None = None,
) -> dict[str, Any]:
    """Write the plain snapshot to `target`, replacing what is there. StoreError, and no file, when it is unusable."""
    expected = expected or Expected()
    try:
        with _reading(source, settings) as stored, target.open("wb") as file:
            free = shutil.disk_usage(target.parent).free * 4 // 5  # the rest is for others on this disk
            hashed = HashedReader(stored)
            codec.decode(hashed, file, identities, min(free, expected.max_size or free))
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        if expected.sha256 and hashed.sha256 != expected.sha256:
            raise StoreError(
                f"{source} is not what was stored: its sha256 is {hashed.sha256}, expected {expected.sha256}"
            )
    except OSError as error:
        target.unlink(missing_ok=True)
        if error.errno == errno.ENOSPC:
            raise StoreError(f"there is no room left for the snapshot in {target.parent}; free space") from error
        raise StoreError(f"{source} can't be copied to {target}: {error.strerror or error}") from error
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return {"location": source, "size": hashed.size, "sha256": hashed.sha256, "snapshot_size": size}


def _reading(source: str, settings: Settings) -> AbstractContextManager[codec.Reader]:
    if source.startswith("https://"):
        return transfer.reading(source)
    return store.reading(location(source), settings)
