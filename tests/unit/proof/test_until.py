from __future__ import annotations

from typing import Any

import pytest

from proof.until import phase, ready, reason, settled
from sandbox.errors import SandboxError


def _cluster(*, state: str = "Running", moves: str = "False", generation: int = 2) -> dict[str, Any]:
    condition = {"type": "Progressing", "status": moves, "reason": "AllMembersHealthy"}
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
        (_cluster(moves="True"), False),
        (_cluster(generation=1), False),
        ({"metadata": {"generation": 1}}, False),
    ],
)
def test_settled_is_in_that_state_by_its_present_spec_and_nothing_moves(cluster: dict[str, Any], is_so: bool) -> None:
    assert settled(cluster.get("status", {}), cluster, "Running") == is_so


def test_a_reason_is_that_of_what_it_is_doing() -> None:
    cluster = _cluster()
    assert reason(cluster["status"], cluster, "AllMembersHealthy")
    assert not reason(cluster["status"], cluster, "QuorumHealthy")
    assert not reason({}, cluster, "AllMembersHealthy")


def test_who_has_ended_otherwise_is_not_waited_for() -> None:
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
