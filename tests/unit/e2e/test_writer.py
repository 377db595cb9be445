from __future__ import annotations

import pytest
from etcd3gw.exceptions import ConnectionFailedError

from tests.e2e.traffic import writer


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
