"""Whether a history of operations is strictly serializable, by the revisions that etcd gave them. Pure.

Every change has a revision of its own, and a read tells the revision at which it was made. So there is only one order
to check: an operation that started after another one ended has a larger revision (a read: not a smaller one), and a
read returns the newest write at its revision. An operation without an answer was executed once, at any later time, or
never.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..traffic.operations import Operation, Seen

_WRITES = ("put", "swap")


def violations(history: Sequence[Operation]) -> list[str]:
    """What no strictly serializable store could have answered; acknowledged writes that are lost are among it."""
    executed = [*(each for each in history if each.revision), *_seen_by_others(history)]
    return [
        *_time_travel(executed),
        *_shared_revisions(executed),
        *_wrong_swaps(executed),
        *_wrong_reads(executed, history),
    ]


def _seen_by_others(history: Sequence[Operation]) -> list[Operation]:
    """The writes without an answer whose values were read, with the revisions that the readers saw."""
    unanswered = {each.number: each for each in history if not each.revision and each.kind in _WRITES}
    found: dict[int, Operation] = {}
    for each in history:
        if each.seen and (write := unanswered.get(each.seen.value)) and write.key == each.key:
            # It may take effect long after the client gave up.
            found.setdefault(write.number, replace(write, revision=each.seen.revision, changed=True, end=math.inf))
    return list(found.values())


def _time_travel(executed: Sequence[Operation]) -> Iterator[str]:
    """Operations that started after another one ended, and have no larger revision."""
    ended, newest = iter(sorted(executed, key=lambda each: each.end)), None
    following = next(ended, None)
    for each in sorted(executed, key=lambda one: one.start):
        while following and following.end < each.start:
            newest = following if newest is None or following.revision > newest.revision else newest
            following = next(ended, None)
        if newest and each.revision < newest.revision + each.changed:
            yield f"{told(each)} started after {told(newest)} had ended"


def _shared_revisions(executed: Sequence[Operation]) -> Iterator[str]:
    first: dict[int, Operation] = {}
    for each in (one for one in executed if one.changed):
        if (other := first.setdefault(each.revision, each)) is not each:
            yield f"{told(each)} and {told(other)} have the same revision"


def _wrong_swaps(executed: Sequence[Operation]) -> Iterator[str]:
    for each in (one for one in executed if one.kind == "swap" and one.seen):
        if each.seen and (each.seen.revision == each.expected) != each.changed:
            yield f"{told(each)} {'was executed' if each.changed else 'was refused'}, and found {_found(each.seen)}"


def _wrong_reads(executed: Sequence[Operation], history: Iterable[Operation]) -> Iterator[str]:
    """Reads that do not return the newest write at their revision."""
    writes: Mapping[str, dict[int, Operation]] = defaultdict(dict)
    for each in (one for one in executed if one.changed):
        writes[each.key][each.revision] = each
    revisions = {key: sorted(found) for key, found in writes.items()}
    deletes = [each for each in history if not each.revision and each.kind == "delete"]
    gone: dict[str, int] = {}  # by key, the revision at which a delete without an answer had been executed
    for each in sorted((one for one in executed if one.seen), key=lambda one: one.seen.at if one.seen else 0):
        seen = each.seen
        assert seen
        known = revisions.get(each.key, [])
        index = bisect_right(known, seen.at)
        newest = writes[each.key][known[index - 1]] if index else None
        if newest and gone.get(each.key, 0) > newest.revision:
            newest = None
        expected = (
            Seen(seen.at, newest.number, newest.revision) if newest and newest.kind != "delete" else Seen(seen.at)
        )
        if seen == expected:
            continue
        possible = [one for one in deletes if one.key == each.key and one.start < each.end]
        if not seen.revision and newest and newest.revision < seen.at and possible:
            gone[each.key] = seen.at
            deletes.remove(max(possible, key=lambda one: one.start))  # it explains one disappearance, and not the next
            continue
        yield f"{told(each)} found {_found(seen)}, and not {told(newest) if newest else 'nothing'}"


def told(each: Operation) -> str:
    name = f"{each.kind} {each.number}" if each.number else "the last read"
    return f"{name} of {each.key} (revision {each.revision})"


def _found(seen: Seen) -> str:
    return f"the value of {seen.value} (revision {seen.revision})" if seen.revision else "nothing"
