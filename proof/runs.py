"""Did every run of a schedule happen, and only once? python -m proof.runs NAMESPACE SCHEDULE SECONDS

Read from the events of the EtcdBackups, which are there when the EtcdBackups are not any more.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from sandbox import cluster as sandbox


def wrong(names: Sequence[str], schedule: str, seconds: int) -> list[str]:
    """What must not be: a run that was done twice, or one that is missing between the first and the last."""
    said = [f"{name} was done twice" for name in sorted(set(names)) if names.count(name) > 1]
    due = sorted({_due(name, schedule) for name in names})
    return said + [f"none between {one} and {other}" for one, other in pairwise(due) if other - one != seconds]


def _due(name: str, schedule: str) -> int:
    text = name.removeprefix(f"{schedule}-")
    return int(datetime.strptime(text, "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp())


def main() -> None:
    namespace, schedule, seconds = sys.argv[1:]
    selector = "--field-selector=involvedObject.kind=EtcdBackup,reason=Succeeded"
    found = sandbox.kubectl("get", "events", f"--namespace={namespace}", selector, "--output=json")
    names = [event["involvedObject"]["name"] for event in json.loads(found)["items"]]
    own = [name for name in names if name.startswith(f"{schedule}-")]
    if said := wrong(own, schedule, int(seconds)):
        sys.exit("; ".join(said))
    print(f"{len(own)} runs")


if __name__ == "__main__":
    main()
