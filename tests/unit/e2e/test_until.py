from __future__ import annotations

from typing import Any

import pytest

from sandbox.errors import SandboxError
from tests.e2e.waits.until import phase, ready, reason, settled


def _cluster(*, state: str = "Running", progressing: str = "False", generation: int = 2) -> dict[str, Any]:
    condition = {"type": "Progressing", "status": progressing, "reason": "AllMembersHealthy"}
    other = {"type": "Available", "status": "True", "reason": "QuorumHealthy"}
    return {
        "metadata": {"generation": 2},
        "status": {"phase": state, "observedGeneration": generation, "conditions": [other, condition]},
    }


@pytest.mark.parametrize(
    ("cluster", "is_so"),
    [
        (_cluster(), True),
        (_cluster(state="Scaling"), False),
        (_cluster(progressing="True"), False),
        (_cluster(generation=1), False),
        ({"metadata": {"generation": 1}}, False),
    ],
)
def test_settled_cluster_has_the_phase_for_its_current_spec(cluster: dict[str, Any], is_so: bool) -> None:
    assert settled(cluster.get("status", {}), cluster, "Running") == is_so


def test_reason_is_that_of_condition_progressing() -> None:
    cluster = _cluster()
    assert reason(cluster["status"], cluster, "AllMembersHealthy")
    assert not reason(cluster["status"], cluster, "QuorumHealthy")
    assert not reason({}, cluster, "AllMembersHealthy")


def test_wait_ends_when_the_object_ended_in_another_phase() -> None:
    assert phase({"phase": "Succeeded"}, {}, "Succeeded")
    assert not phase({"phase": "Running"}, {}, "Succeeded")
    with pytest.raises(SandboxError, match="It has Failed: no room"):
        phase({"phase": "Failed", "message": "no room"}, {}, "Succeeded")
    with pytest.raises(SandboxError, match="It has Succeeded"):
        phase({"phase": "Succeeded"}, {}, "Failed")


def test_all_replicas_are_ready() -> None:
    assert ready({"readyReplicas": 3}, {"spec": {"replicas": 3}}, "")
    assert not ready({}, {"spec": {"replicas": 3}}, "")
    assert ready({}, {"spec": {"replicas": 0}}, "")
