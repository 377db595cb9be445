"""Which backups to keep: a pure function. The last good one is always kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..api.schedule import Retention

FAILED = 3  # how many failed ones are kept while no newer one is good; a schedule may fail every minute for weeks


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
    their reason old news, or enough newer bad ones. Those that are not done are left alone.
    """
    newest_first = sorted(backups, key=lambda each: (each.due, each.name), reverse=True)
    good = [each for each in newest_first if each.good]
    wanted = {each.name for each in good[: max(1, retention.last)]}
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
    bad = [each for each in newest_first if each.done and not each.good]
    wanted |= {each.name for each in bad[:FAILED] if not good or each.due >= good[0].due}
    return [each.name for each in reversed(newest_first) if each.done and each.name not in wanted]
