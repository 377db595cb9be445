"""Run many schedules, or replay one and print its trace."""

from __future__ import annotations

import argparse
import sys

from ..etcd import ViolationError
from .schedule import play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.restore", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="number of schedules to run")
    parser.add_argument("--seed", type=int, help="run only this seed and print its trace")
    options = parser.parse_args()
    try:
        if options.seed is not None:
            print("\n".join(play(options.seed)))
            return 0
        for seed in range(options.seeds):
            play(seed)
    except ViolationError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
