"""What a run does, and when. Pure: the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

# How often each of them is chosen, against the others.
WEIGHTS = {
    "delete pod": 4,
    "lose claim": 2,
    "lose data": 2,
    "damage database": 1,
    "node off": 2,
    "node freeze": 2,
    "node cut": 2,
    "kill operator": 3,
    "freeze operator": 2,
    "second operator": 2,
    "edit size": 4,
    "edit settings": 2,
    "edit version": 2,
    "edit volume": 1,
    "pause": 1,
}


@dataclass(frozen=True)
class Step:
    after: float  # seconds after the step before
    what: str
    who: float  # from 0 to 1: which of the possible targets or values
    lasts: float  # seconds, for what ends


def steps(seed: int) -> Iterator[Step]:
    """Without an end."""
    random = Random(seed)  # noqa: S311
    while True:
        what = random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        # Often at the worst moment: while the operator still works on the step before.
        yield Step(random.uniform(0.5, 8), what, random.random(), random.uniform(3, 25))
