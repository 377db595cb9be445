from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.schedule import (
    Retention,
    Schedule,
    ScheduleError,
    parse,
    runs_after,
    zone_of,
)

CREATED = datetime(2026, 11, 16, 10, 30, tzinfo=UTC)
NIGHTLY = Schedule("nightly", "ns", "uid-1", 1, CREATED, "example", "0 3 * * *", zone="Europe/Berlin")


def _resource(**spec: Any) -> dict[str, Any]:
    meta = {"name": "nightly", "namespace": "ns", "uid": "uid-1", "creationTimestamp": "2026-11-16T10:30:00Z"}
    return {"metadata": meta, "spec": {"cluster": "example", "schedule": "0 3 * * *", **spec}}


def test_object_is_parsed_with_its_defaults() -> None:
    assert parse(_resource()) == replace(NIGHTLY, zone="UTC", template=(("cluster", "example"),))
    destination = {"claim": {"name": "disk"}}
    parsed = parse(
        _resource(
            timeZone="Europe/Berlin",
            jitterSeconds=60,
            startingDeadlineSeconds=120,
            concurrencyPolicy="Replace",
            suspend=True,
            retention={"last": 2, "daily": 3},
            destination=destination,
        )
    )
    assert parsed == replace(
        NIGHTLY,
        jitter=timedelta(minutes=1),
        deadline=timedelta(minutes=2),
        concurrency="Replace",
        suspend=True,
        retention=Retention(last=2, daily=3),
        template=(("cluster", "example"), ("destination", destination)),
    )


def test_runs_follow_the_time_zone_and_its_changes() -> None:
    runs = runs_after(NIGHTLY, datetime(2026, 3, 27, 12, tzinfo=UTC))
    assert [next(runs).astimezone(UTC).hour for _ in range(3)] == [2, 1, 1]  # summer time begins on the 29th


def test_unknown_time_zone_counts_as_utc_and_has_no_runs() -> None:
    unknown = replace(NIGHTLY, zone="Mars/Olympus")
    assert zone_of(unknown).key == "UTC"
    with pytest.raises(ScheduleError, match="Mars/Olympus is unknown"):
        runs_after(unknown, CREATED)


def test_backup_of_a_run_is_named_after_its_time_in_utc() -> None:
    due = next(runs_after(NIGHTLY, CREATED))
    assert NIGHTLY.tick(due) == "nightly-20261117-020000"
