"""Draws docs/states.md from the planner's own table: python -m tools.states [--check]."""

from __future__ import annotations

import sys
from pathlib import Path

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import TRANSITIONS, Phase, Step

PAGE = Path(__file__).resolve().parent.parent / "docs/states.md"
_MEANING = {
    Phase.PENDING: "Nothing has been done yet.",
    Phase.BOOTSTRAPPING: "The members start for the first time, all at once.",
    Phase.RUNNING: "Every member serves.",
    Phase.SCALING: "Members are added or removed, one at a time, until there are as many as wanted.",
    Phase.REPAIRING: "A member that is lost for good is replaced.",
    Phase.UPGRADING: "Members move to another version, one at a time, after a snapshot.",
    Phase.RESTARTING: "Members take up other settings, one at a time.",
    Phase.EXPANDING: "The members' claims grow; no pod restarts.",
    Phase.DEGRADED: "A quorum serves, some members don't; the message says which and why.",
    Phase.STARTING: "Fewer than a quorum serve, and pods are on their way.",
    Phase.RESTORING: "An EtcdRestore holds it: no member runs until each has the data of a snapshot.",
    Phase.HIBERNATED: "Size 0: no pods, the data is kept.",
    Phase.PAUSED: "The operator leaves the cluster alone.",
    Phase.QUORUM_LOST: "Fewer than a quorum serve and nothing is on its way: a person must act. Nothing is deleted.",
    Phase.UNSUPPORTED: "What is asked for can't be done; the message says why and what to do.",
    Phase.DELETING: "The cluster is being deleted.",
}


def page() -> str:
    arrows = "\n".join(f"    {start} --> {end}: {when}" for start, end, when in TRANSITIONS)
    rows = "\n".join(f"| {phase} | {_MEANING[phase]} |" for phase in Phase)
    steps = ", ".join(f"`{step}`" for step in Step if step is not Step.IDLE)
    return f"""# The states of an EtcdCluster

<!-- Made by `python -m tools.states` from plugins/module_utils/plan.py; a test keeps it true. -->

```mermaid
stateDiagram-v2
    [*] --> {Phase.PENDING}
{arrows}
    {Phase.DELETING} --> [*]
```

A cluster can be paused, deleted or found unsupported in any state; the diagram shows the usual ways.

| state | meaning |
|---|---|
{rows}

Each reconcile takes exactly one step, or none: {steps}. What a step does is in `roles/etcdcluster/tasks/steps/`.
"""


def main() -> int:
    if "--check" in sys.argv:
        return 0 if PAGE.read_text() == page() else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
