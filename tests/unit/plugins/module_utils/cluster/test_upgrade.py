"""Another version: no member moves before the path is allowed, every member is healthy and etcd is prepared."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, UpgradeSpec, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import upgrade
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    AddLearner,
    CancelDowngrade,
    EnableDowngrade,
    RestartMember,
    UpdateObjects,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.memory import Upgrade, recall
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.status import events, status

from .builders import (
    CLUSTER,
    NOW,
    UNMANAGED,
    action_of,
    answer,
    answering,
    applied,
    down,
    image_version,
    listing,
    member,
    names,
    object_of,
    planned,
    recorded,
    released,
    remembering,
    running,
    running_version,
    situation,
    unstarted,
    upgraded,
    with_versions,
    without_quorum,
)

SKIP = UpgradeSpec(snapshot=False)
NEW = replace(CLUSTER, version="3.6.17", generation=2, upgrade=UpgradeSpec(backup={"destination": {"newClaim": {}}}))
NEXT = replace(NEW, version="3.7.3", upgrade=SKIP)


# -- what blocks an upgrade


def test_version_that_can_not_be_reached_is_refused() -> None:
    refused = planned(replace(NEW, version="3.7.3"), with_versions(running(), ["3.5.35"] * 3, "3.5"))
    assert (refused.phase, refused.reason, refused.action) == (Phase.UNSUPPORTED, Reason.VERSION_REFUSED, None)
    assert "Version 3.7.3 refused" in refused.message


def test_path_starts_at_what_members_run_not_at_what_the_spec_said() -> None:
    observed = with_versions(running(), ["3.6.10", "3.6.16", "3.6.16"], "3.6")
    assert planned(NEXT, observed).reason is Reason.VERSION_REFUSED


def test_alarm_blocks_an_upgrade() -> None:
    alarmed = answering(running_version("3.6.16"), {1: answer(2, errors=("memberID:1 alarm:NOSPACE",))})
    blocked = planned(NEW, alarmed)
    assert (blocked.reason, blocked.action) == (Reason.UPGRADE_BLOCKED, None)
    assert "etcd on e-1 reports memberID:1 alarm:NOSPACE" in blocked.message


def test_unmanaged_member_blocks_an_upgrade() -> None:
    observed = listing(running_version("3.6.16"), *map(member, range(3)), replace(UNMANAGED, is_learner=False))
    blocked = planned(NEW, observed)
    assert blocked.reason is Reason.UPGRADE_BLOCKED
    assert "is an unmanaged member" in blocked.message


def test_upgrade_waits_until_every_member_is_healthy() -> None:
    waiting = planned(NEW, down(running_version("3.6.16"), 2))
    assert (waiting.phase, waiting.action) == (Phase.DEGRADED, None)
    assert "The upgrade to 3.6.17 waits until every member is healthy." in waiting.message


def test_size_may_change_while_an_upgrade_is_blocked() -> None:
    alarmed = answering(running_version("3.6.16"), {1: answer(2, errors=("memberID:1 alarm:NOSPACE",))})
    assert action_of(planned(replace(NEW, size=5), alarmed), AddLearner).pod == "e-3"


# -- what etcd must do


def test_logs_are_dropped_before_an_upgrade_to_3_7() -> None:
    observed, plans = running_version("3.6.16"), []
    states: tuple[dict[str, str], ...] = (
        {"cluster_version": "3.6"},
        {"cluster_version": "3.6", "downgrade": "3.5.0"},
        {"cluster_version": "3.5", "downgrade": "3.5.0"},
        {"cluster_version": "3.5"},
        {"cluster_version": "3.6"},
    )
    for state in states:
        answers: dict[str, Any] = {"storage": "3.6.0", **state}
        observed = with_versions(observed, ["3.6.16"] * 3, **answers)
        plans.append(planned(NEXT, observed))
        observed = remembering(observed, upgrade=recall(plans[-1].record).upgrade)
    *preparing, release = plans
    assert {plan.reason for plan in preparing} == {Reason.PREPARING_LOG}
    assert [plan.action for plan in preparing] == [EnableDowngrade("3.5"), None, CancelDowngrade(), None]
    assert (release.reason, image_version(release)) == (Reason.UPGRADE_STARTED, "3.7.3")


def test_downgrade_happens_only_when_it_is_allowed_and_etcd_is_ready() -> None:
    older = replace(NEW, version="3.5.35", upgrade=SKIP)
    assert planned(older, running_version("3.6.16")).reason is Reason.VERSION_REFUSED
    allowed = replace(older, upgrade=replace(SKIP, allow_downgrade=True))
    plan = planned(allowed, running_version("3.6.16"))
    assert (plan.reason, plan.action) == (Reason.ENABLING_DOWNGRADE, EnableDowngrade("3.5"))
    enabled = with_versions(running(), ["3.6.16"] * 3, "3.5", downgrade="3.5.0", storage="3.6.0")
    plan = planned(allowed, enabled)
    assert (plan.reason, plan.action) == (Reason.ENABLING_DOWNGRADE, None)
    lowered = with_versions(running(), ["3.6.16"] * 3, "3.5", downgrade="3.5.0", storage="3.5.0")
    assert image_version(planned(allowed, lowered)) == "3.5.35"


def test_downgrade_that_is_taken_back_is_cancelled_first() -> None:
    observed = released("3.5.35", Upgrade("3.6.16", "3.5.35", NOW))
    observed = with_versions(observed, ["3.6.16", "3.6.16", "3.5.35"], "3.5", downgrade="3.5.0", storage="3.5.0")
    plan = planned(CLUSTER, observed)
    assert (plan.reason, plan.action) == (Reason.CANCELLING_DOWNGRADE, CancelDowngrade())
    cancelled = with_versions(observed, ["3.6.16", "3.6.16", "3.5.35"], "3.5", storage="3.5.0")
    assert image_version(planned(CLUSTER, cancelled)) == "3.6.16"


def test_downgrade_that_is_taken_back_is_cancelled_also_while_a_learner_cannot_start() -> None:
    """Its image may not exist: a member in memory is replaced by a learner with the new version."""
    observed = released("3.5.35", Upgrade("3.6.16", "3.5.35", NOW))
    observed = with_versions(observed, ["3.6.16", "3.6.16", "3.5.35"], "3.5", downgrade="3.5.0", storage="3.5.0")
    observed = listing(observed, member(0), member(1), unstarted(2, 9))
    assert planned(CLUSTER, observed).reason is Reason.CANCELLING_DOWNGRADE


def test_downgrade_that_etcd_took_back_is_enabled_again_before_a_member_joins() -> None:
    """It was cancelled for a learner, which did not join: without it the cluster version rises again."""
    observed = released("3.5.35", Upgrade("3.6.16", "3.5.35", NOW))
    older = replace(CLUSTER, version="3.5.35")
    two = listing(observed, member(0), member(1))
    risen = with_versions(two, ["3.6.16"] * 3, "3.6")
    assert planned(older, risen).reason is Reason.ENABLING_DOWNGRADE
    seen = situation(older, risen)
    assert seen.membership
    lowering = upgrade.lower_again(seen, seen.membership)
    assert lowering
    assert lowering.action == EnableDowngrade("3.5")
    lowered = with_versions(two, ["3.6.16"] * 3, "3.5", downgrade="3.5.0")
    assert isinstance(planned(older, lowered).action, AddLearner)


# -- back, and the end


@pytest.mark.parametrize("version", ["3.5.35", "3.6.17"])
def test_target_is_corrected_although_a_member_is_down_because_of_it(version: str) -> None:
    """Back to the former version, or on to one that exists; the snapshot from before exists."""
    observed = released("3.6.99", Upgrade("3.5.35", "3.6.99", NOW, "e-before"))
    observed = with_versions(observed, ["3.5.35"] * 3, "3.5")
    observed = down(observed, 2, problem="ImagePullBackOff", version="3.6.99")
    release = planned(replace(NEW, version=version), observed)
    assert (release.reason, image_version(release)) == (Reason.UPGRADE_STARTED, version)


def test_another_minor_version_waits_until_the_upgrade_in_progress_is_complete() -> None:
    observed = released("3.6.99", Upgrade("3.6.16", "3.6.99", NOW, "e-before"))
    assert planned(NEXT, down(observed, 2)).reason in (Reason.UPGRADE_BLOCKED, Reason.WAITING_FOR_MEMBER)
    assert action_of(planned(NEXT, observed), RestartMember).pod.name == "e-2"  # towards what was released


def test_upgrade_whose_target_was_edited_when_its_last_member_moved_is_complete() -> None:
    """Every member runs 3.6.17, but nobody recorded it before the target became 3.7.3."""
    moved = upgraded(replace(NEW, version="3.6.17"), Upgrade("3.5.35", "3.6.17", NOW - timedelta(hours=1)))
    upgrade = recall(planned(NEXT, moved).record).upgrade
    assert upgrade
    assert (upgrade.source, upgrade.to, upgrade.started, upgrade.in_progress) == ("3.6.17", "3.7.3", NOW, True)

    blocked = planned(NEXT, with_versions(moved, ["3.6.17"] * 3, "3.5"))  # etcd has not agreed on it yet
    assert blocked.reason is Reason.UPGRADE_BLOCKED


def test_target_can_be_corrected_without_quorum() -> None:
    observed = released("3.6.99", Upgrade("3.5.35", "3.6.99", NOW, "e-before"))
    pods = tuple(replace(pod, problem="ImagePullBackOff", version="3.6.99") for pod in observed.pods)
    lost = without_quorum(replace(observed, pods=pods))
    back = replace(NEW, version="3.5.35")
    assert image_version(planned(back, lost)) == "3.5.35"
    assert image_version(planned(NEXT, lost)) == ""
    action = action_of(planned(back, applied(lost, planned(back, lost))), UpdateObjects)
    assert names(action.stuck_pods) == ["e-0", "e-1", "e-2"]


def _condition(found: dict[str, Any], kind: str) -> str:
    return next(str(each["status"]) for each in found["conditions"] if each["type"] == kind)


def test_rollback_tells_what_was_tried() -> None:
    """Taken back during the rollout: the target is the former version again."""
    going = released("3.6.17", Upgrade("3.6.16", "3.6.17", NOW))
    redirected = planned(replace(CLUSTER, generation=3), going)
    assert (redirected.record["upgrade"]["to"], redirected.record["upgrade"]["tried"]) == ("3.6.16", "3.6.17")
    back = remembering(running_version("3.6.16"), upgrade=recall(redirected.record).upgrade)
    plan = planned(CLUSTER, back)
    assert plan.record["upgrade"]["completed"]
    assert plan.record["upgrade"]["tried"] == "3.6.17"
    event = events(CLUSTER, plan, {})[0]
    told = ("RolledBack", "Every member runs 3.6.16 again. The upgrade to 3.6.17 was rolled back.")
    assert (event.reason, event.message) == told
    cluster = situation(CLUSTER, remembering(back, upgrade=recall(plan.record).upgrade))
    found = status(cluster, planned(CLUSTER, cluster.observed), {"upgrade": plan.record["upgrade"]})
    upgraded_condition = next(each for each in found["conditions"] if each["type"] == "Upgraded")
    assert upgraded_condition["message"] == told[1]


@pytest.mark.parametrize(
    ("source", "word"), [("3.6.16", "Upgraded"), ("3.6.18", "Downgraded"), ("3.6.17", "RolledBack")]
)
def test_end_of_an_upgrade_is_reported_once(source: str, word: str) -> None:
    cluster = replace(NEW, version="3.6.17")
    observed = upgraded(cluster, Upgrade(source, "3.6.17", NOW))
    done = planned(cluster, observed)
    before = {"phase": "Upgrading", "observedGeneration": 2}
    assert events(cluster, done, before)[0].reason == word
    after = status(situation(cluster, observed), done, before)
    assert after["upgrade"]["completed"]
    assert (after["clusterVersion"], after["storageVersion"]) == ("3.6", "3.6")
    assert _condition(after, "Upgraded") == "True"
    again = planned(cluster, replace(observed, memory=recall(after)))
    assert events(cluster, again, after) == []


def test_completion_is_recorded_before_the_next_target_is_considered() -> None:
    cluster = replace(NEW, version="3.6.17")
    done = planned(cluster, upgraded(cluster, Upgrade("3.6.16", "3.6.17", NOW)))
    upgrade = recall(done.record).upgrade
    assert upgrade
    assert (upgrade.to, upgrade.completed, upgrade.in_progress) == ("3.6.17", NOW, False)


def test_upgrade_is_complete_although_the_volumes_can_not_grow() -> None:
    cluster = replace(NEW, version="3.6.17", storage=replace(NEW.storage, size="2Gi"))
    observed = upgraded(replace(NEW, version="3.6.17"), Upgrade("3.6.16", "3.6.17", NOW))
    claims = tuple(replace(claim, requested="1Gi", capacity="1Gi") for claim in observed.claims)
    observed = replace(observed, claims=claims, unexpandable=("rigid",))
    done = planned(cluster, observed)
    assert done.reason is Reason.EXPANSION_REFUSED
    after = status(situation(cluster, observed), done, {"phase": "Upgrading"})
    assert after["upgrade"]["completed"]
    assert _condition(after, "Upgraded") == "True"
    assert "Upgraded" in [each.reason for each in events(cluster, done, {"phase": "Upgrading"})]


def test_upgrade_is_not_complete_before_the_cluster_version_follows() -> None:
    cluster = replace(NEW, version="3.6.17")
    observed = with_versions(upgraded(cluster, Upgrade("3.5.35", "3.6.17", NOW)), ["3.6.17"] * 3, "3.5")
    waiting = planned(cluster, observed)
    assert (waiting.phase, waiting.reason) == (Phase.UPGRADING, Reason.WAITING_FOR_CLUSTER_VERSION)
    assert _condition(status(situation(cluster, observed), waiting, {}), "Upgraded") == "False"


def test_configuration_file_is_for_the_older_of_what_a_pod_runs_and_will_run() -> None:
    options = {"extra": {"corrupt-check-time": "1h"}}
    cluster = replace(NEW, options=options, upgrade=SKIP)
    release = planned(cluster, with_versions(running(), ["3.5.35"] * 3, "3.5"))
    files = object_of(release, "ConfigMap")["data"]
    assert all("\nexperimental-corrupt-check-time:" in text for text in files.values())
    observed = with_versions(recorded(applied(running(), release), release), ["3.5.35"] * 3, "3.5")
    restart = planned(cluster, observed)
    files = object_of(restart, "ConfigMap")["data"]
    assert action_of(restart, RestartMember).pod.name == "e-2"
    assert ["\ncorrupt-check-time:" in files[f"e-{number}.yaml"] for number in range(3)] == [False, False, True]


def test_upgrade_settings_are_parsed() -> None:
    spec = {"size": 3, "version": "3.6.16"}
    upgrade = {
        "allowDowngrade": True,
        "snapshot": {"mode": "Required", "destination": {"claim": {"name": "a"}}, "keepFor": "7d"},
    }
    meta = {"name": "e", "namespace": "d", "uid": "u"}

    def parsed(spec: dict[str, Any]) -> Cluster:
        return parse({"metadata": meta, "spec": spec})

    assert parsed(spec).upgrade == UpgradeSpec(backup={"destination": {"newClaim": {}}})
    wanted = UpgradeSpec(True, True, {"destination": {"claim": {"name": "a"}}}, timedelta(days=7))
    assert parsed({**spec, "upgrade": upgrade}).upgrade == wanted
