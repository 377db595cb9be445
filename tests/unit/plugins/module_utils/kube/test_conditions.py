from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.conditions import (
    conditions,
    differs,
    sentence,
    time_text,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_the_transition_time_moves_only_when_the_status_changes() -> None:
    first = conditions([("Available", "True", "Ready", "one"), ("Degraded", "False", "Ready", "")], 1, [], NOW)
    assert [each["lastTransitionTime"] for each in first] == ["2026-01-02T03:04:05Z"] * 2
    later = NOW + timedelta(minutes=1)
    second = conditions([("Available", "True", "Other", "two"), ("Degraded", "True", "Lost", "")], 2, first, later)
    assert [each["lastTransitionTime"] for each in second] == ["2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z"]
    assert [(each["reason"], each["observedGeneration"]) for each in second] == [("Other", 2), ("Lost", 2)]


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ({}, {"a": 1}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 2}, {"a": 1}, True),
        ({"a": None}, {}, False),
        ({"a": None}, {"a": 1}, True),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, False),
        ({"a": {"b": None}}, {"a": {"b": 1}}, True),
        ({"a": {"b": None}}, {}, False),
        ({"a": [1]}, {"a": [1, 2]}, True),
    ],
)
def test_a_status_differs_when_a_merge_patch_would_change_it(
    new: dict[str, Any], old: dict[str, Any], expected: bool
) -> None:
    assert differs(new, old) is expected


def test_times_are_in_utc() -> None:
    assert time_text(NOW.astimezone(timezone(timedelta(hours=5)))) == "2026-01-02T03:04:05Z"


def test_sentences_have_a_capital_letter_and_a_full_stop() -> None:
    assert sentence("no space left") == "No space left."
    assert sentence("Done.") == "Done."
    assert sentence("s3://bucket is full") == "s3://bucket is full."
