from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.conditions import conditions, differs, sentence

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_transition_time_moves_only_with_the_status() -> None:
    (first,) = conditions([("Available", "True", "Healthy", "Good.")], 1, [], NOW)
    assert first == {
        "type": "Available",
        "status": "True",
        "reason": "Healthy",
        "message": "Good.",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-11-16T12:00:00Z",
    }
    later = NOW + timedelta(minutes=1)
    (second,) = conditions([("Available", "True", "Scaling", "Better.")], 2, [first], later)
    assert second["lastTransitionTime"] == first["lastTransitionTime"]
    assert (second["reason"], second["observedGeneration"]) == ("Scaling", 2)
    (third,) = conditions([("Available", "False", "Down", "Bad.")], 2, [second], later)
    assert third["lastTransitionTime"] == "2026-11-16T12:01:00Z"


def test_status_differs_only_in_what_would_be_written() -> None:
    old = {"phase": "Running", "size": 3, "upgrade": {"from": "3.5.35", "to": "3.6.16"}}
    assert not differs({"phase": "Running", "absent": None}, old)
    assert not differs({"upgrade": {"to": "3.6.16"}}, old)
    assert differs({"size": None}, old)
    assert differs({"upgrade": {"to": "3.6.17"}}, old)
    assert differs({"upgrade": {"from": None}}, old)
    assert differs({"new": 1}, old)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("it failed", "It failed."),
        ("It failed.", "It failed."),
        ("s3://bucket/key can't be read", "s3://bucket/key can't be read."),
    ],
)
def test_sentence_has_a_capital_and_a_full_stop(words: str, expected: str) -> None:
    assert sentence(words) == expected
