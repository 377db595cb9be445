"""Where a snapshot is stored: a file, or an object in an object store."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import StoreError

S3 = "s3"
SCHEMES = (S3,)  # object stores; store.py knows how to open each


@dataclass(frozen=True)
class Location:
    """A path, or scheme://bucket/key."""

    name: str  # the object's key, or the file's path
    bucket: str = ""
    scheme: str = ""  # "" for a file

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.name}" if self.scheme else self.name


def location(text: str) -> Location:
    """Parse what the user wrote as dest or src."""
    found = re.fullmatch(r"([a-z][a-z0-9+.-]*)://([^/]*)/?(.*)", text, re.DOTALL)
    if not found:
        return Location(text)
    scheme, bucket, key = found.groups()
    if scheme not in SCHEMES:
        known = ", ".join(f"{each}://" for each in SCHEMES)
        raise StoreError(f"{text}: {scheme}:// is not supported. Write a path or one of {known}")
    if not bucket or not key:
        raise StoreError(f"{text} names no object; write it as {scheme}://bucket/key")
    return Location(key, bucket, scheme)
