"""A reconcile with nothing to do writes nothing: python settled.py NAMESPACE CLUSTER. Counted in the audit log."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from sandbox import cluster as sandbox
from sandbox import layout

READS = ("get", "list", "watch")


TRIES = 3  # a look may find news that etcd tells of a while after its start; soon there are none


def main() -> None:
    for _ in range(TRIES):
        writes, reads = look(*sys.argv[1:])
        if not writes:
            print(f"{reads} reads, no write")
            return
    sys.exit(f"a settled reconcile wrote, {TRIES} times: {', '.join(writes)}")


def look(namespace: str, name: str) -> tuple[list[str], int]:
    """Have the operator look: what it wrote, and how often it read."""
    before = len(_requests(namespace))
    sandbox.kubectl("annotate", "etcd", name, f"--namespace={namespace}", f"touched={time.time()}", "--overwrite")
    end = time.monotonic() + 60
    while not any(request["objectRef"]["resource"] == "statefulsets" for request in _requests(namespace)[before:]):
        if time.monotonic() > end:
            sys.exit("the operator did not look at the cluster within 60 s")
        time.sleep(0.5)
    time.sleep(3)  # to write, if it wanted to
    requests = _requests(namespace)[before:]
    writes = [f"{request['verb']} {request['requestURI']}" for request in requests if request["verb"] not in READS]
    return writes, len(requests) - len(writes)


def _requests(namespace: str) -> list[dict[str, Any]]:
    """What service accounts asked for in the namespace, the oldest first."""
    whole, _, _ = (layout.control_plane().logs / "audit.log").read_text().rpartition("\n")
    lines = whole.splitlines()
    return [r for r in map(json.loads, lines) if r.get("objectRef", {}).get("namespace") == namespace]


if __name__ == "__main__":
    main()
