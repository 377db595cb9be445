"""docs/states.md has every transition that the planner makes."""

from __future__ import annotations

import pytest

from tools.generate import states

from .transitions import count, transitions

SEEDS = 400
_CHUNK = 100


@pytest.mark.parametrize("first", range(0, SEEDS, _CHUNK))
def test_schedules_show_only_documented_transitions(first: int) -> None:
    found = count(range(first, first + _CHUNK))
    documented = states.parse(states.DATA.read_text())
    assert states.undocumented(found, documented) == [], "run: python -m tests.simulation.transitions && make generate"


def test_common_transitions_are_seen_in_a_few_schedules() -> None:
    assert ("Pending", "Bootstrapping") in transitions(1)
