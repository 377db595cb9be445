"""The checker finds every kind of history that no strictly serializable store can have, and accepts all others."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.e2e.checks.history import violations
from tests.e2e.traffic import operations
from tests.e2e.traffic.operations import Operation, Seen

PUT = Operation(1, "put", "k", start=1, end=2, revision=10, changed=True)
READ = Operation(2, "get", "k", start=3, end=4, revision=12, seen=Seen(12, 1, 10))
DELETE = Operation(3, "delete", "k", start=5, end=6, revision=14, changed=True, seen=Seen(13, 1, 10))
SWAP = Operation(4, "swap", "k", expected=0, start=7, end=8, revision=16, changed=True, seen=Seen(15))
REFUSED = Operation(5, "swap", "k", expected=10, start=9, end=10, revision=16, seen=Seen(16, 4, 16))
GOOD = (PUT, READ, DELETE, SWAP, REFUSED)


def unanswered(each: Operation) -> Operation:
    return replace(each, revision=0, changed=False, seen=None, failure="timed out")


def test_good_history_has_no_violation() -> None:
    assert violations(GOOD) == []


@pytest.mark.parametrize(
    ("history", "said"),
    [
        (
            (PUT, replace(READ, seen=Seen(12))),
            "get 2 of k (revision 12) found nothing, and not put 1 of k (revision 10)",
        ),
        (
            (PUT, replace(READ, number=0, seen=Seen(12))),
            "the last read of k (revision 12) found nothing, and not put 1",
        ),
        ((PUT, replace(READ, seen=Seen(12, 9, 10))), "found the value of 9 (revision 10), and not put 1"),
        ((PUT, replace(READ, seen=Seen(12, 1, 11))), "found the value of 1 (revision 11), and not put 1"),
        ((READ,), "found the value of 1 (revision 10), and not nothing"),
        ((PUT, replace(READ, revision=9, seen=Seen(9))), "started after put 1 of k (revision 10) had ended"),
        ((PUT, replace(PUT, number=7, start=3, end=4)), "started after put 1 of k (revision 10) had ended"),
        ((PUT, replace(PUT, number=7, key="l")), "have the same revision"),
        ((*GOOD[:3], replace(READ, number=7, start=7, end=8, revision=15, seen=Seen(15, 1, 10))), "and not delete 3"),
        (
            (PUT, replace(SWAP, seen=Seen(15, 1, 10))),
            "swap 4 of k (revision 16) was executed, and found the value of 1",
        ),
        ((*GOOD[:4], replace(REFUSED, expected=16)), "swap 5 of k (revision 16) was refused, and found the value of 4"),
    ],
)
def test_violation_is_found(history: tuple[Operation, ...], said: str) -> None:
    assert any(said in each for each in violations(history)), violations(history)


def test_write_without_an_answer_was_executed_or_not() -> None:
    assert violations((unanswered(PUT), READ)) == []
    assert violations((unanswered(PUT), replace(READ, seen=Seen(12)))) == []


def test_write_without_an_answer_is_executed_once() -> None:
    again = replace(READ, number=7, start=5, end=6, revision=20, seen=Seen(20, 1, 19))
    assert violations((unanswered(PUT), READ, again))


def test_write_without_an_answer_is_not_executed_before_it_starts() -> None:
    before = Operation(9, "put", "other", start=0, end=0.5, revision=11, changed=True)
    assert violations((before, unanswered(PUT), READ))


def test_write_without_an_answer_that_was_read_does_not_vanish() -> None:
    later = replace(READ, number=7, start=5, end=6, revision=13, seen=Seen(13))
    assert violations((unanswered(PUT), READ, later))


def test_delete_without_an_answer_explains_that_a_key_is_absent_from_then_on() -> None:
    absent = replace(READ, number=7, start=7, end=8, revision=15, seen=Seen(15))
    assert violations((PUT, READ, unanswered(DELETE), absent)) == []
    assert violations((PUT, READ, unanswered(replace(DELETE, start=9)), absent))
    back = replace(READ, number=8, start=9, end=10, revision=17, seen=Seen(17, 1, 10))
    assert violations((PUT, READ, unanswered(DELETE), absent, back))


class Store:
    """A strictly serializable store."""

    def __init__(self) -> None:
        self.revision, self.keys = 1, dict[str, tuple[int, int]]()

    def execute(self, asked: Operation) -> Operation:
        value, revision = self.keys.get(asked.key, (0, 0))
        found = Seen(self.revision, value, revision)
        changed = asked.kind == "put" or (asked.kind == "delete" and value > 0)
        changed |= asked.kind == "swap" and revision == asked.expected
        self.revision += changed
        if changed and asked.kind == "delete":
            del self.keys[asked.key]
        elif changed:
            self.keys[asked.key] = (asked.number, self.revision)
        return replace(asked, revision=self.revision, changed=changed, seen=None if asked.kind == "put" else found)


def _history(seed: int) -> list[Operation]:
    """Three clients whose requests overlap, are lost, lose their answers, or take effect late."""
    random, store, history = Random(seed), Store(), list[Operation]()  # noqa: S311
    known: list[dict[str, int]] = [{}, {}, {}]
    late: list[Operation] = []
    for number in range(1, 300):
        client, now = known[number % 3], float(number)
        asked = replace(operations.operation(number, "/", client), start=now - random.random() * 3)
        fate = random.random()
        if fate < 0.85:
            done = replace(store.execute(asked), end=now + random.random() * 3)
            client[done.key] = operations.last_write(done)
            history.append(done)
        else:
            history.append(replace(asked, end=now + 1, failure="timed out"))
            if fate < 0.95:
                late.append(asked)
        if late and random.random() < 0.3:
            store.execute(late.pop(0))
    final = [Operation(0, "get", key, start=900, end=900, revision=store.revision) for key in {o.key for o in history}]
    return [*history, *(replace(one, seen=Seen(store.revision, *store.keys.get(one.key, (0, 0)))) for one in final)]


@pytest.mark.parametrize("seed", range(100))
def test_histories_of_a_strictly_serializable_store_are_accepted(seed: int) -> None:
    assert violations(_history(seed)) == []


@pytest.mark.parametrize("seed", range(20))
def test_every_acknowledged_write_that_is_lost_is_found(seed: int) -> None:
    history = _history(seed)
    for index, each in enumerate(history):
        if each.number == 0 and each.seen and each.seen.revision and "once" in each.key:
            lost = [*history[:index], replace(each, seen=Seen(each.revision)), *history[index + 1 :]]
            acknowledged = any(one.key == each.key and one.changed for one in history)
            assert bool(violations(lost)) == acknowledged


def test_delete_without_an_answer_explains_one_disappearance_only() -> None:
    again = replace(PUT, number=7, start=11, end=12, revision=20, changed=True)
    gone = [
        replace(READ, number=number, start=at, end=at + 1, revision=rev, seen=Seen(rev))
        for number, at, rev in ((8, 7, 15), (9, 13, 21))
    ]
    assert violations((PUT, unanswered(DELETE), gone[0], again)) == []
    assert violations((PUT, unanswered(DELETE), gone[0], again, gone[1]))
