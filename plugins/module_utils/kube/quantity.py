"""Kubernetes quantities, as far as sizes need them."""

from __future__ import annotations

import re
from decimal import Decimal

_SUFFIXES = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{letter: Decimal(1000) ** (power + 1) for power, letter in enumerate("kMGTPE")},
    **{f"{letter}i": Decimal(1024) ** (power + 1) for power, letter in enumerate("KMGTPE")},
}
_FORM = re.compile(r"^((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$")


def parse(text: str) -> Decimal:
    """The number that a quantity stands for; ValueError when it is none."""
    found = _FORM.match(text)
    if not found or found[2] not in _SUFFIXES:
        raise ValueError(f"{text!r} is not a quantity")
    return Decimal(found[1]) * _SUFFIXES[found[2]]


def is_smaller(quantity: str, size: str) -> bool:
    """Whether a quantity is less than a size; an unknown one ("") is not."""
    return bool(quantity) and parse(quantity) < parse(size)


def rounded(size: int) -> str:
    """A size in two digits, rounded up, so that a status does not change with every write."""
    for power, unit in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        whole = 1024**power
        if size >= whole:
            value = -(-size // whole)
            if value >= 100:
                value = -(-value // 10) * 10
            return f"{value}{unit}"
    return str(size)
