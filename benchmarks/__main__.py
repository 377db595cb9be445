"""Runs the benchmarks on the sandbox: a row for each, and all of it in one JSON file."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from pathlib import Path

from . import bootstrap

MEASURES = {"apply_to_healthy": bootstrap.three_members, "ten_at_once": bootstrap.ten_at_once}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    wanted = sys.argv[1:] or list(MEASURES)
    if unknown := set(wanted) - set(MEASURES):
        sys.exit(f"There is no measure {', '.join(sorted(unknown))}; there are {', '.join(MEASURES)}.")
    machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    results: dict[str, object] = {"machine": machine, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    for name in wanted:
        figures = MEASURES[name]()
        results[name] = figures
        print(f"{name:<20}" + "  ".join(f"{key}={value:.2f}" for key, value in figures.items()), flush=True)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {path}")


if __name__ == "__main__":
    main()
