from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import status
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Answer, Observed
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.planner import plan
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.conditions import differs

from .test_planner import CLUSTER, NOW, _nothing, _running, _status


def _told(seen: Observed, before: dict[str, Any] | None = None) -> dict[str, Any]:
    return status.status(CLUSTER, seen, plan(CLUSTER, seen), before or {})


def _condition(told: dict[str, Any], kind: str) -> tuple[str, str]:
    return next((c["status"], c["reason"]) for c in told["conditions"] if c["type"] == kind)


def test_a_running_cluster() -> None:
    told = _told(_running())
    assert (told["phase"], told["readyMembers"], told["leader"], told["version"]) == (
        "Running",
        3,
        "example-0",
        "3.6.16",
    )
    assert _condition(told, "Available") == ("True", "QuorumServes")
    assert _condition(told, "Progressing")[0] == "False"
    assert _condition(told, "Degraded")[0] == "False"
    assert [member["role"] for member in told["members"]] == ["leader", "voter", "voter"]
    assert told["client"]["secret"] == "example-client-tls"


def test_members_are_joined_by_id_not_by_position() -> None:
    """Invariant 6: the answers come in another order than the list, and from pods with other numbers."""
    seen = _running()
    assert seen.members
    swapped = {"example-0": Answer(_status(2), True), "example-2": Answer(_status(0), False, "no leader")}
    told = _told(replace(seen, answers={**seen.answers, **swapped}))
    healthy = {member["id"]: member["healthy"] for member in told["members"]}
    assert healthy == {"1": False, "2": True, "3": True}


def test_nobody_answers_is_unknown_not_the_last_good_value() -> None:
    seen = replace(_running(), answers={}, members=None)
    told = _told(seen, before=_told(_running()))
    assert _condition(told, "Available")[0] == "Unknown"
    assert told["members"] == []
    assert told["leader"] is None


def test_a_second_look_changes_nothing() -> None:
    """Invariant 5: no write, no event."""
    first = _told(_running())
    later = replace(_running(), now=NOW.replace(hour=5))
    again = status.status(CLUSTER, later, plan(CLUSTER, later), first)
    assert not differs(again, first)
    assert status.events(CLUSTER, plan(CLUSTER, later), first) == []


def test_a_field_that_goes_is_a_change_once() -> None:
    before = _told(_running())
    seen = replace(_running(), answers={}, members=None)
    after = _told(seen, before)
    assert differs(after, before)
    written = {key: value for key, value in after.items() if value is not None}
    assert not differs(_told(seen, written), written)


def test_transitions_make_events() -> None:
    first = plan(CLUSTER, _nothing())
    assert [(e.type, e.reason) for e in status.events(CLUSTER, first, {})] == [("Normal", "Bootstrapping")]
    lost = replace(first, phase=Phase.QUORUM_LOST, reason="QuorumLost")
    assert status.events(CLUSTER, lost, _told(_running()))[0].type == "Warning"


def test_an_even_size_is_warned_of_once() -> None:
    even = replace(CLUSTER, size=4, generation=2)
    seen = _running()
    first = status.events(even, plan(even, seen), _told(seen))
    assert [event.reason for event in first if event.type == "Warning"] == ["EvenSize"]
    told = status.status(even, seen, plan(even, seen), {})
    assert status.events(even, plan(even, seen), told) == []


def test_backed_up_follows_the_last_good_backup() -> None:
    first = _told(_running())
    assert "BackedUp" not in [each["type"] for each in first["conditions"]]
    last = {"name": "one", "time": "2026-11-16T12:00:00Z", "revision": 7}
    backed_up = _told(_running(), first | {"lastBackup": last})
    assert _condition(backed_up, "BackedUp") == ("True", "Succeeded")
    for before in (backed_up, _told(_running(), backed_up)):  # it was deleted, and that is not forgotten
        assert _condition(_told(_running(), before), "BackedUp") == ("False", "Deleted")
