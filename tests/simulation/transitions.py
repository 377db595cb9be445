"""Collects the transitions between phases that schedules report: python -m tests.simulation.transitions.

Writes docs/transitions.txt, from which `make generate` draws docs/states.md.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

from tools.generate.states import DATA, Seen, Transition, dump

from .schedule import play_world


def transitions(seed: int) -> set[Transition]:
    """The transitions that one schedule reports."""
    return {(start, end) for start, end in play_world(seed).operator.phases if start != end}


def count(seeds: Iterable[int], processes: int = 1) -> Counter[Transition]:
    """In how many schedules each transition is seen."""
    if processes == 1:
        return Counter(each for seed in seeds for each in transitions(seed))
    with ProcessPoolExecutor(processes) as pool:
        return Counter(each for found in pool.map(transitions, seeds, chunksize=50) for each in found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.transitions", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3000, help="number of schedules to run")
    seeds = parser.parse_args().seeds
    DATA.write_text(dump(Seen(seeds, count(range(seeds), os.cpu_count() or 1))))


if __name__ == "__main__":
    main()
