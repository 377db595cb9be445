"""What is reported and planned while etcd reports an alarm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import planner, status
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    ExpandVolumes,
    PromoteLearner,
    ReplaceMember,
    RestartMember,
    UpdateObjects,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.memory import Upgrade
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observe import observe
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import PATIENT

from ...etcds import eventually
from .builders import (
    CLUSTER,
    NOW,
    answer,
    answering,
    applied,
    claim,
    down,
    listing,
    member,
    planned,
    running,
    situation,
    upgraded,
    with_claim,
)
from .live import Live

NOSPACE = "memberID:1 alarm:NOSPACE "
CORRUPT = "memberID:2 alarm:CORRUPT "


def _alarmed(observed: Observation, *errors: str) -> Observation:
    """Every member that answers reports these alarms."""
    told = {}
    for number in range(5):
        one = observed.view.answer(CLUSTER.client_url(CLUSTER.pod_name(number)))
        if one:
            told[number] = replace(one, status=replace(one.status, errors=errors))
    return answering(observed, told)


def _status(observed: Observation, before: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    cluster = replace(CLUSTER, **spec)
    found = status.status(situation(cluster, observed), planned(cluster, observed), before or {})
    return {key: value for key, value in found.items() if value is not None}


def _condition(found: dict[str, Any], kind: str) -> tuple[str, str]:
    return next((c["status"], c["reason"]) for c in found["conditions"] if c["type"] == kind)


def test_full_database_of_real_members_is_reported(three_live: Live) -> None:
    """Every member is healthy, and every write is refused."""
    client = three_live.etcds.client()
    first = client.status().member_id
    client.call("maintenance/alarm", {"action": "ACTIVATE", "memberID": str(first), "alarm": "NOSPACE"})
    memory = {"clusterID": f"{client.status().cluster_id:x}"}
    eventually(lambda: len(observe(three_live.kube, three_live.cluster, memory).observed.view.healthy) == 3)
    s = observe(three_live.kube, three_live.cluster, memory)
    found = status.status(s, planner.plan(s), {})
    assert found["alarms"] == [{"member": "e-0", "alarm": "NOSPACE"}]
    assert _condition(found, "Available") == ("False", "NoSpace")
    assert {one["quota"] for one in found["members"]} == {"2Gi"}
    assert all(one["dbSizeInUse"] for one in found["members"])


def test_no_space_is_reported_with_what_to_do() -> None:
    plan = planned(CLUSTER, _alarmed(running(), NOSPACE))
    assert (plan.phase, plan.reason, plan.requeue) == (Phase.DEGRADED, Reason.NO_SPACE, PATIENT)
    for word in ("e-0", "compact", "defrag", "alarm disarm", "spec.options.quotaBackendBytes", "docs/alarms.md"):
        assert word in plan.message
    found = _status(_alarmed(running(), NOSPACE))
    assert _condition(found, "Available") == ("False", "NoSpace")
    assert _condition(found, "Degraded") == ("True", "NoSpace")
    assert found["readyMembers"] == 3


def test_corruption_counts_more_than_a_full_database() -> None:
    found = _status(_alarmed(running(), NOSPACE, "alarm:CORRUPT "))
    assert (found["phase"], _condition(found, "Available")) == ("Degraded", ("False", "Corrupt"))
    assert "alarm CORRUPT on an unknown member" in found["message"]
    assert found["alarms"] == [{"alarm": "CORRUPT"}, {"alarm": "NOSPACE", "member": "e-0"}]


def test_end_of_an_alarm_is_reported() -> None:
    before = _status(_alarmed(running(), NOSPACE))
    after = _status(running(), before)
    assert (after["phase"], after.get("alarms")) == ("Running", None)
    assert _condition(after, "Available")[0] == "True"
    assert _condition(after, "Degraded")[0] == "False"


def test_alarm_makes_one_warning_event() -> None:
    alarmed = _alarmed(running(), NOSPACE)
    plan = planned(CLUSTER, alarmed)
    assert [(e.type, e.reason) for e in status.events(CLUSTER, plan, _status(running()))] == [("Warning", "NoSpace")]
    assert status.events(CLUSTER, plan, _status(alarmed)) == []


def test_alarm_during_another_operation_is_reported_too() -> None:
    """A paused cluster, or one that scales, has another phase; the conditions and the event tell of the alarm."""
    alarmed = _alarmed(running(), NOSPACE)
    for spec in ({"paused": True}, {"size": 5}):
        cluster = replace(CLUSTER, **spec)
        before, plan = _status(running(), **spec), planned(cluster, alarmed)
        assert plan.phase in (Phase.PAUSED, Phase.SCALING)
        assert ("Warning", "NoSpace") in [(e.type, e.reason) for e in status.events(cluster, plan, before)]
        found = _status(alarmed, before, **spec)
        assert _condition(found, "Available") == ("False", "NoSpace")
        assert _condition(found, "Degraded") == ("True", "NoSpace")
        assert status.events(cluster, plan, found) == []


def test_full_database_blocks_neither_repair_nor_rollout_nor_expansion() -> None:
    lost = with_claim(_alarmed(down(running(), 2, deleting=True), NOSPACE), 2, deleting=True)
    assert isinstance(planned(CLUSTER, lost).action, ReplaceMember)
    larger = replace(CLUSTER, options={"quotaBackendBytes": "4Gi"})
    alarmed = _alarmed(running(), NOSPACE)
    first = planned(larger, alarmed)
    assert isinstance(first.action, UpdateObjects)
    assert isinstance(planned(larger, applied(alarmed, first)).action, RestartMember)
    grown = replace(CLUSTER, storage=replace(CLUSTER.storage, size="2Gi"))
    small = replace(alarmed, claims=tuple(claim(number, requested="1Gi", capacity="1Gi") for number in range(3)))
    assert isinstance(planned(grown, small).action, ExpandVolumes)


def test_end_of_an_upgrade_is_recorded_in_spite_of_an_alarm() -> None:
    new = replace(CLUSTER, version="3.6.17", generation=2)
    done = _alarmed(upgraded(new, Upgrade("3.6.16", "3.6.17", NOW)), NOSPACE)
    plan = planned(new, done)
    assert plan.record["upgrade"]["completed"]
    assert plan.reason is Reason.NO_SPACE


def test_corruption_allows_only_the_replacement_of_a_lost_member() -> None:
    corrupt = _alarmed(running(), CORRUPT)
    settings = replace(CLUSTER, options={"logLevel": "debug"})
    changed = applied(corrupt, planned(settings, corrupt))
    assert planned(settings, changed).action is None
    larger = replace(CLUSTER, size=5)
    assert planned(larger, applied(corrupt, planned(larger, corrupt))).action is None
    lost = with_claim(_alarmed(down(running(), 1, deleting=True), CORRUPT), 1, deleting=True)
    assert isinstance(planned(CLUSTER, lost).action, ReplaceMember)
    learner = member(3, is_learner=True)
    joining = listing(running(opened=[3], numbers=range(4), replicas=4), *map(member, range(3)), learner)
    joining = _alarmed(answering(joining, {3: answer(4, learner=True)}), CORRUPT)
    sealed = applied(joining, planned(replace(CLUSTER, size=4), joining))
    assert isinstance(planned(replace(CLUSTER, size=4), sealed).action, PromoteLearner)
