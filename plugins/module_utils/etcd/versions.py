"""A version of etcd, from text or from an image."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def series(self) -> str:
        return f"{self.major}.{self.minor}"


def parse(text: str) -> Version:
    """From 3.6.16, 3.6, or 3.7.0-rc.1."""
    found = re.match(r"^v?(\d+)\.(\d+)(?:\.(\d+))?", text)
    if not found:
        raise ValueError(f"{text!r} is not an etcd version")
    return Version(int(found[1]), int(found[2]), int(found[3] or 0))


def of_image(image: str) -> str:
    """The version in an image's tag; "" when it has none."""
    found = re.search(r":v(\d+\.\d+\.\d+)$", image)
    return found[1] if found else ""
