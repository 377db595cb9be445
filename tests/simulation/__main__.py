"""Run many schedules, or replay one and print its trace."""

from __future__ import annotations

import argparse
import sys
import time

from .etcd import ViolationError
from .schedule import play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="number of schedules to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="run only this seed and print its trace")
    parser.add_argument("--steps", type=int, default=40, help="number of steps per schedule")
    options = parser.parse_args()
    try:
        if options.seed is not None:
            print("\n".join(play(options.seed, options.steps)))
            return 0
        started = time.process_time()
        for seed in range(options.first, options.first + options.seeds):
            play(seed, options.steps)
    except ViolationError as error:
        print(error)
        return 1
    seconds = time.process_time() - started
    print(f"{options.seeds} schedules passed, {options.seeds / seconds:.0f} per second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
