"""Random schedules hold every invariant; each has a seed that plays it again."""

from __future__ import annotations

import pytest

from .etcd import ViolationError
from .schedule import play, play_all

SEEDS = 2000
_CHUNK = 100


@pytest.mark.parametrize("first", range(0, SEEDS, _CHUNK))
def test_the_invariants_hold_and_the_cluster_becomes_whole(first: int) -> None:
    play_all(range(first, first + _CHUNK))


def test_a_seed_plays_the_same_again() -> None:
    assert play(7) == play(7)


def test_a_failure_tells_its_seed_and_what_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ansible_collections.etcdops.etcd.plugins.module_utils.cluster.scaling._repair", lambda *_: None
    )
    with pytest.raises(ViolationError, match=r"becomes whole(.|\n)*seed \d+(.|\n)*status Bootstrapping"):
        play_all(range(SEEDS))
