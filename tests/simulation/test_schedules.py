"""Every invariant holds in random schedules; each schedule has a seed that replays it."""

from __future__ import annotations

import pytest

from .etcd import ViolationError
from .schedule import play, play_all

SEEDS = 2000
_CHUNK = 100


@pytest.mark.parametrize("first", range(0, SEEDS, _CHUNK))
def test_invariants_hold_and_the_cluster_converges(first: int) -> None:
    play_all(range(first, first + _CHUNK))


def test_seed_replays_the_same_schedule() -> None:
    assert play(7) == play(7)


def test_failure_reports_its_seed_and_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansible_collections.etcdops.etcd.plugins.module_utils.cluster.repair.repair", lambda *_: None)
    with pytest.raises(ViolationError, match=r"the cluster converges(.|\n)*seed \d+(.|\n)*status Bootstrapping"):
        play_all(range(SEEDS))
