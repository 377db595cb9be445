from __future__ import annotations

import pytest
from etcd3gw.exceptions import ConnectionFailedError

from tests.e2e.traffic import writer
from tests.e2e.traffic.writer import Found

RUN = "1a"


def _found(number: int, **changes: object) -> Found:
    whole: dict[str, object] = {"value": writer.value(RUN, number), "version": 1, "create_revision": 7}
    whole |= {"mod_revision": 7, **changes}
    return Found(**whole)  # type: ignore[arg-type]


def test_all_is_well() -> None:
    found = {number: _found(number) for number in (1, 2, 3)}
    assert writer.violations([1, 2, 3], [1, 2, 3], found, RUN) == []


def test_a_request_that_failed_may_have_been_done_or_not() -> None:
    assert writer.violations([1, 2, 3], [1], {1: _found(1), 2: _found(2)}, RUN) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, "acknowledged and lost: 1"),
        ({1: _found(1, value="write 2 of 1a")}, "not as written: 1 is 'write 2 of 1a'"),
        ({1: _found(1, version=2, mod_revision=9)}, "written twice: 1 (version 2)"),
        ({1: _found(1, mod_revision=9)}, "written twice: 1 (version 1)"),
        ({1: _found(1), 2: _found(2, version=2)}, "written twice: 2 (version 2)"),
        ({1: _found(1), 9: _found(9)}, "never written: 9"),
    ],
)
def test_what_must_not_be_is_said(found: dict[int, Found], said: str) -> None:
    assert writer.violations([1, 2], [1], found, RUN) == [said]


def test_each_loss_is_said() -> None:
    assert len(writer.violations(range(20), range(20), {}, RUN)) == 20


def test_the_longest_gap_may_be_the_last() -> None:
    assert writer.longest_gap([1.0, 1.5, 1.1], 1.6) == pytest.approx(0.4)
    assert writer.longest_gap([1.0, 1.5], 4.0) == pytest.approx(2.5)
    assert writer.longest_gap([], 4.0) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"error":"raft: stopped", "code":2, "message":"raft: stopped"}', "raft: stopped"),
        ("('Connection aborted.', RemoteDisconnected('without response'))", "RemoteDisconnected"),
        ('(Caused by X("<C at 0x1>: [Errno 111] Connection refused"))', "[Errno 111] Connection refused"),
        ("Caused by ConnectTimeoutError(<HTTPSConnection at 0x7f>, 'no')", "ConnectTimeoutError"),
        ("HTTPSConnectionPool(host='198.19.1.2'): Read timed out. (read timeout=0.5)", "timed out"),
        ("odd", "ConnectionFailedError"),
    ],
)
def test_failures_are_told_in_few_words(text: str, words: str) -> None:
    assert writer.short_reason(ConnectionFailedError(text)) == words
