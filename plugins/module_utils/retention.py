"""Which backups to keep: a pure function. The last good one is always kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Retention:
    last: int = 7
    hourly: int = 0
    daily: int = 0
    weekly: int = 0


@dataclass(frozen=True)
class Kept:
    """A backup that this schedule has made."""

    name: str
    due: datetime  # in the schedule's time zone: a day begins at midnight there
    good: bool
    done: bool  # well or not


def to_delete(backups: Sequence[Kept], retention: Retention) -> list[str]:
    """The names of those that are not to be kept, oldest first.

    Good ones go when no rule asks for them. Bad ones have no data and go when there is a newer good one, which makes
    their reason old news. Those that are not done are left alone.
    """
    newest_first = sorted(backups, key=lambda each: (each.due, each.name), reverse=True)
    good = [each for each in newest_first if each.good]
    if not good:
        return []
    wanted = {good[0].name} | {each.name for each in good[: retention.last]}
    classes: tuple[tuple[int, Callable[[datetime], Any]], ...] = (
        (retention.hourly, lambda due: (due.date(), due.hour)),
        (retention.daily, lambda due: due.date()),
        (retention.weekly, lambda due: due.isocalendar()[:2]),
    )
    for count, period in classes:
        latest: dict[Any, str] = {}
        for each in good:
            latest.setdefault(period(each.due), each.name)
        wanted |= set(list(latest.values())[:count])
    stale = [each for each in newest_first if each.done and not each.good and each.due < good[0].due]
    unwanted = [each for each in good if each.name not in wanted]
    return [each.name for each in sorted([*unwanted, *stale], key=lambda each: (each.due, each.name))]
