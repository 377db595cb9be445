"""Check that a schedule began no run twice and lost none: python -m tests.e2e.checks.runs NAMESPACE SCHEDULE SECONDS

Reads the events of the Jobs and of the schedule, which outlive the EtcdBackups.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from sandbox import cluster as sandbox
from sandbox import command

_MISSED = re.compile(r"Starting (\S+)\. (\d+) earlier runs? w")
_SKIPPED = re.compile(r"Skipped the run of (\S+): ")
_FEW = 3  # runs that may be left out, because the operator was down or the machine is busy


def violations(
    names: Sequence[str], schedule: str, seconds: int, missed: dict[str, int], skipped: Collection[int] = ()
) -> list[str]:
    """Runs that were done twice, or are missing between the first and the last without a word.

    `missed`: by run, how many before it were due while no operator ran; the schedule makes up for the latest only.
    `skipped`: the times of runs that were due while the one before was not finished.
    """
    problems = [f"{name} was done twice" for name in sorted(set(names)) if names.count(name) > 1]
    due = {_due(name, schedule): missed.get(name, 0) for name in names}
    for one, other in pairwise(sorted(due)):
        left_out = due[other] + sum(one < time < other for time in skipped)
        if other - one != seconds * (1 + left_out):
            problems.append(f"none between {one} and {other}")
    return problems


def _due(name: str, schedule: str) -> int:
    text = name.removeprefix(f"{schedule}-")
    return int(datetime.strptime(text, "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp())


def _events(namespace: str, kind: str, reason: str) -> list[Any]:
    selector = f"--field-selector=involvedObject.kind={kind},reason={reason}"
    found = sandbox.kubectl("get", "events", f"--namespace={namespace}", selector, "--output=json")
    return list(json.loads(found)["items"])


def main() -> None:
    namespace, schedule, seconds = sys.argv[1:]
    completed = _events(namespace, "Job", "Completed")
    jobs = {(event["involvedObject"]["name"], event["involvedObject"]["uid"]) for event in completed}
    ends = "-backup"
    own = [name.removesuffix(ends) for name, _ in jobs if name.startswith(f"{schedule}-") and name.endswith(ends)]
    begun = (_MISSED.match(event["message"]) for event in _events(namespace, "EtcdBackupSchedule", "StartingRun"))
    missed = {found[1]: int(found[2]) for found in begun if found}
    held = (_SKIPPED.match(event["message"]) for event in _events(namespace, "EtcdBackupSchedule", "RunSkipped"))
    skipped = {int(datetime.fromisoformat(found[1]).timestamp()) for found in held if found}
    if sum(missed.values()) + len(skipped) > _FEW:
        sys.exit(f"too many runs were left out: {missed}, {skipped}")
    if problems := violations(own, schedule, int(seconds), missed, skipped):
        sys.exit("; ".join(problems))
    print(f"{len(own)} runs")


if __name__ == "__main__":
    command.run("runs", main)
