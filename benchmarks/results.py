"""Result files in results/: one per run, with one key per measure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .figures import Figures

FOLDER = Path(__file__).parent / "results"
Results = dict[str, Any]


def write(path: Path, results: Results) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")


def read(path: Path) -> Results:
    found: Results = json.loads(path.read_text())
    return found


def merge(found: list[Results]) -> Results:
    """Merge runs of one machine. If a measure has several results, the latest is used."""
    merged: Results = {}
    for one in sorted(found, key=lambda run: str(run["time"])):
        merged |= one
    return merged | {"time": ", ".join(sorted(str(one["time"]) for one in found))}


def newest(folder: Path = FOLDER) -> Path | None:
    return max(folder.glob("*.json"), default=None, key=lambda path: path.name)


def row(name: str, figures: Figures) -> str:
    """A measure as one line of the printed table."""
    return f"{name:<23}" + "  ".join(f"{key}={short(value)}" for key, value in figures.items())


def short(value: float) -> str:
    """A figure with about three significant digits."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
