from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import status
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.conditions import differs

from .builders import (
    CLUSTER,
    NOW,
    answer,
    answering,
    listing,
    member,
    nothing,
    planned,
    running,
    situation,
    unstarted,
    without_quorum,
)


def _status(observed: Observation, before: dict[str, Any] | None = None) -> dict[str, Any]:
    return status.status(situation(CLUSTER, observed), planned(CLUSTER, observed), before or {})


def _condition(found: dict[str, Any], kind: str) -> tuple[str, str]:
    return next((c["status"], c["reason"]) for c in found["conditions"] if c["type"] == kind)


def test_status_of_a_running_cluster() -> None:
    found = _status(running())
    assert (found["phase"], found["readyMembers"], found["size"]) == ("Running", 3, 3)
    assert (found["leader"], found["version"], found["clusterID"]) == ("e-0", "3.6.16", "abc")
    assert _condition(found, "Available") == ("True", "QuorumHealthy")
    assert _condition(found, "Progressing")[0] == "False"
    assert _condition(found, "Degraded")[0] == "False"
    assert [one["role"] for one in found["members"]] == ["leader", "voter", "voter"]
    assert found["client"]["secret"] == "e-client-tls"
    assert {c["observedGeneration"] for c in found["conditions"]} == {CLUSTER.generation}


def test_members_are_joined_by_id_not_by_position() -> None:
    """Invariant 6: the answers come in another order than the list, and from pods with other ordinals."""
    found = _status(answering(running(), {0: answer(3), 2: answer(1, error="no leader")}))
    healthy = {one["id"]: one["healthy"] for one in found["members"]}
    assert healthy == {"1": False, "2": True, "3": True}


def test_learner_that_has_not_started_has_the_name_of_its_pod() -> None:
    found = _status(listing(running(), *map(member, range(3)), unstarted(3, 9)))
    expected = {"name": "e-3", "id": "9", "role": "learner", "healthy": False}
    assert found["members"][-1] == expected
    assert _condition(found, "Available") == ("True", "QuorumHealthy")


def test_availability_is_unknown_when_no_member_answers() -> None:
    found = _status(without_quorum(running()), before=_status(running()))
    assert _condition(found, "Available") == ("Unknown", "NoAnswer")
    assert found["members"] == []
    assert found["leader"] is None


def test_cluster_is_not_available_without_quorum() -> None:
    unhealthy = {number: answer(number + 1, error="no leader") for number in range(3)}
    assert _condition(_status(answering(running(), unhealthy)), "Available")[0] == "False"


def test_second_reconcile_changes_nothing() -> None:
    """Invariant 5: no write, no event."""
    first = _status(running())
    later = replace(running(), now=NOW.replace(hour=5))
    plan = planned(CLUSTER, later)
    assert not differs(status.status(situation(CLUSTER, later), plan, first), first)
    assert status.events(CLUSTER, plan, first) == []


def test_removed_field_is_a_change_once() -> None:
    before = _status(running())
    observed = without_quorum(running())
    after = _status(observed, before)
    assert differs(after, before)
    written = {key: value for key, value in after.items() if value is not None}
    assert not differs(_status(observed, written), written)


def test_transitions_make_events() -> None:
    first = planned(CLUSTER, nothing())
    assert [(e.type, e.reason) for e in status.events(CLUSTER, first, {})] == [("Normal", "Bootstrapping")]
    lost = replace(first, phase=Phase.QUORUM_LOST, reason=Reason.QUORUM_LOST)
    assert status.events(CLUSTER, lost, _status(running()))[0].type == "Warning"


def test_reason_that_waits_for_a_person_makes_a_warning_event() -> None:
    blocked = replace(planned(CLUSTER, running()), phase=Phase.UPGRADING, reason=Reason.UPGRADE_BLOCKED)
    assert [(e.type, e.reason) for e in status.events(CLUSTER, blocked, {})] == [("Warning", "UpgradeBlocked")]


def test_end_of_a_rollout_makes_an_event() -> None:
    done = planned(CLUSTER, running())
    reasons = [event.reason for event in status.events(CLUSTER, done, {"phase": "Restarting"})]
    assert "SettingsChanged" in reasons


def test_even_size_is_warned_of_once() -> None:
    even = replace(CLUSTER, size=4, generation=2)
    observed = running()
    plan = planned(even, observed)
    first = status.events(even, plan, _status(observed))
    assert [event.reason for event in first if event.type == "Warning"] == ["EvenSize"]
    after = status.status(situation(even, observed), plan, {})
    assert status.events(even, plan, after) == []


def test_backed_up_follows_the_last_successful_backup() -> None:
    first = _status(running())
    assert "BackedUp" not in [each["type"] for each in first["conditions"]]
    last = {"name": "one", "time": "2026-11-16T12:00:00Z", "revision": 7}
    backed_up = _status(running(), first | {"lastBackup": last})
    assert _condition(backed_up, "BackedUp") == ("True", "Succeeded")
    for before in (backed_up, _status(running(), backed_up)):  # it was deleted, and that is not forgotten
        assert _condition(_status(running(), before), "BackedUp") == ("False", "Deleted")
