"""Every invariant of backups and restores holds in random schedules; each schedule has a seed that replays it."""

from __future__ import annotations

import pytest

from .schedule import play

SEEDS = 500
_CHUNK = 100


@pytest.mark.parametrize("first", range(0, SEEDS, _CHUNK))
def test_invariants_hold_and_everything_ends(first: int) -> None:
    for seed in range(first, first + _CHUNK):
        play(seed)


def test_seed_replays_the_same_schedule() -> None:
    assert play(7) == play(7)


def test_schedules_reach_every_phase() -> None:
    """Otherwise nothing would be checked there."""
    traces = "\n".join(line for seed in range(60) for line in play(seed))
    for phase in ("Verifying", "Snapshotting", "Stopping", "Restoring", "Starting", "PuttingBack", "Succeeded"):
        assert f" {phase}: " in traces
    for seen in ("crash before", "is already being restored by", "delete EtcdCluster/", "The previous data is kept"):
        assert seen in traces
