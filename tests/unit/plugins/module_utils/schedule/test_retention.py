from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.schedule import Retention
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule.retention import FAILED, Kept, to_delete

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def _made(*hours_ago: float, good: bool = True, done: bool = True) -> list[Kept]:
    return [Kept(f"b{hours:g}", NOW - timedelta(hours=hours), good, done) for hours in hours_ago]


def test_last_keeps_that_many() -> None:
    assert to_delete(_made(1, 2, 3, 4), Retention(last=2)) == ["b4", "b3"]
    assert to_delete(_made(1, 2), Retention(last=7)) == []


def test_last_good_backup_is_never_deleted() -> None:
    assert to_delete(_made(5, 6), Retention(last=0, weekly=0)) == ["b6"]
    assert to_delete([*_made(1, 2, 3, good=False), *_made(500)], Retention(last=1)) == []


def test_failed_backups_are_deleted_when_a_newer_one_succeeded() -> None:
    assert to_delete([*_made(1), *_made(2, 3, good=False)], Retention(last=7)) == ["b3", "b2"]
    assert to_delete(_made(2, 3, good=False), Retention(last=1)) == []


def test_three_failed_backups_are_kept_while_no_newer_one_succeeded() -> None:
    assert to_delete(_made(1, 2, 3, 4, 5, good=False), Retention(last=7)) == ["b5", "b4"]
    assert to_delete([*_made(1, 2, 3, 4, good=False), *_made(9)], Retention(last=1)) == ["b4"]


def test_unfinished_backups_are_left_alone() -> None:
    running = _made(0, 30, good=False, done=False)
    assert to_delete([*running, *_made(1, 2)], Retention(last=1)) == ["b2"]


def test_one_backup_is_kept_for_each_hour_day_and_week() -> None:
    every_half_hour = _made(*(number / 2 for number in range(2 * 24 * 30)))
    gone = set(to_delete(every_half_hour, Retention(last=2, hourly=3, daily=3, weekly=4)))
    kept = [each for each in every_half_hour if each.name not in gone]
    assert {each.due for each in kept} == {
        NOW,
        NOW - timedelta(minutes=30),
        NOW.replace(hour=10, minute=30),
        *(datetime(2026, 11, day, 23, 30, tzinfo=UTC) for day in (14, 15)),  # 15 was a Sunday: a week's last too
        *(datetime(2026, 11, day, 23, 30, tzinfo=UTC) for day in (8, 1)),
    }


@pytest.mark.parametrize("seed", range(50))
def test_random_backups_keep_every_rule(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311
    made = [
        Kept(f"b{number}", NOW - timedelta(minutes=dice.randrange(100000)), dice.random() < 0.7, dice.random() < 0.9)
        for number in range(dice.randrange(60))
    ]
    made = [each if each.done else Kept(each.name, each.due, False, False) for each in made]
    rules = Retention(*(dice.randrange(5) for _ in range(4)))
    gone = to_delete(made, rules)
    left = [each for each in made if each.name not in gone]
    good = sorted((each for each in made if each.good), key=lambda each: (each.due, each.name))
    assert all(each.done for each in made if each.name in gone)
    assert {each.name for each in good[len(good) - rules.last :]} <= {each.name for each in left}
    bad = [each for each in left if each.done and not each.good]
    assert len(bad) <= FAILED
    if good:
        assert good[-1] in left
    else:
        assert len(bad) == min(FAILED, sum(each.done for each in made))
    assert to_delete(left, rules) == []  # a second time deletes nothing
