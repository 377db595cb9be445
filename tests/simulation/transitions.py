"""Which transitions between phases schedules show, and how many schedules show each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

from .schedule import play_world

Transition = tuple[str, str]


def transitions(seed: int) -> set[Transition]:
    """The transitions that one schedule reports."""
    return {(start, end) for start, end in play_world(seed).operator.phases if start != end}


def count(seeds: Iterable[int], processes: int = 1) -> Counter[Transition]:
    """In how many schedules each transition is seen."""
    if processes == 1:
        return Counter(each for seed in seeds for each in transitions(seed))
    with ProcessPoolExecutor(processes) as pool:
        return Counter(each for found in pool.map(transitions, seeds, chunksize=50) for each in found)
