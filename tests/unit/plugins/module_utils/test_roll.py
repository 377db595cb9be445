"""Rolls: one member at a time, followers first, and nothing while somebody is not well."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils import manifests
from ansible_collections.etcdops.etcd.plugins.module_utils.observed import Answer, Observed
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Phase, Step
from ansible_collections.etcdops.etcd.plugins.module_utils.planner import plan
from ansible_collections.etcdops.etcd.plugins.module_utils.spec import Cluster, UpgradeSpec

from .test_planner import CLUSTER, NOW, _applied, _running

NEW = replace(CLUSTER, version="3.6.17", generation=2, upgrade=UpgradeSpec(snapshot="Off"))
OTHER = replace(CLUSTER, options={"snapshotCount": 5000}, generation=2)


def _updated(cluster: Cluster, seen: Observed) -> Observed:
    """After the objects were brought to what the spec asks for."""
    for _ in range(3):
        planned = plan(cluster, seen)
        seen = replace(_applied(planned, onto=seen), phase=planned.phase, cleared=planned.cleared or seen.cleared)
        if planned.step is Step.ROLL:
            return seen
    raise AssertionError(planned)


def _restarted(cluster: Cluster, seen: Observed, name: str) -> Observed:
    """After one pod came back as the StatefulSet makes it now."""
    pods = tuple(
        replace(pod, template_hash=manifests.template_hash(cluster)) if pod.name == name else pod for pod in seen.pods
    )
    answer = seen.answers[name]
    assert answer.status
    renewed = replace(answer, status=replace(answer.status, version=cluster.version))
    return replace(seen, pods=pods, answers={**seen.answers, name: renewed})


@pytest.mark.parametrize(("cluster", "phase"), [(NEW, Phase.UPGRADING), (OTHER, Phase.RESTARTING)])
def test_followers_first_the_leader_last_and_then_done(cluster: Cluster, phase: Phase) -> None:
    seen, order = _updated(cluster, _running()), []
    for _ in range(3):
        step = plan(cluster, seen)
        assert (step.phase, step.step) == (phase, Step.ROLL)
        order.append((*step.delete_pods, step.lead))
        seen = _restarted(cluster, seen, step.delete_pods[0])
    assert order == [("example-2", ""), ("example-1", ""), ("example-0", "2")]  # example-0 has led; now one that is new
    done = plan(cluster, seen)
    assert (done.phase, done.step) == (Phase.RUNNING, Step.IDLE)
    assert plan(cluster, replace(seen, phase=done.phase)).reason == "AllMembersServe"


def test_nobody_restarts_while_another_is_not_well() -> None:
    seen = _updated(NEW, _running())
    seen = _restarted(NEW, seen, "example-2")
    down = replace(seen, answers={**seen.answers, "example-2": Answer(None, healthy=False, error="refused")})
    waiting = plan(NEW, down)
    assert (waiting.phase, waiting.step, waiting.reason) == (Phase.UPGRADING, Step.IDLE, "WaitingForMember")
    stopped = plan(NEW, replace(down, now=NOW + timedelta(minutes=10)))
    assert (stopped.step, stopped.reason) == (Step.IDLE, "RollStopped")
    assert "example-2" in stopped.message


def test_a_change_that_went_wrong_is_taken_back_where_it_did_first() -> None:
    seen = _restarted(NEW, _updated(NEW, _running()), "example-2")
    seen = replace(seen, answers={**seen.answers, "example-2": Answer(None, healthy=False, error="refused")})
    back = _updated(CLUSTER, replace(seen, now=NOW + timedelta(minutes=10)))
    step = plan(CLUSTER, back)
    assert (step.step, step.delete_pods, step.lead) == (Step.ROLL, ("example-2",), "")


def test_a_wrong_goal_is_put_right_while_a_member_is_down_for_it() -> None:
    seen = _restarted(NEW, _updated(NEW, _running()), "example-2")
    seen = replace(seen, answers={**seen.answers, "example-2": Answer(None, healthy=False, error="refused")})
    step = plan(replace(NEW, version="3.6.18"), _updated(replace(NEW, version="3.6.18"), seen))
    assert (step.step, step.delete_pods) == (Step.ROLL, ("example-2",))


def test_pods_keep_their_version_until_the_upgrade_is_cleared() -> None:
    asked = replace(NEW, upgrade=UpgradeSpec())
    snapshot = plan(asked, _running())
    assert (snapshot.phase, snapshot.reason) == (Phase.UPGRADING, "TakingSnapshot")
    assert [each["kind"] for each in snapshot.apply] == ["PersistentVolumeClaim", "EtcdBackup"]
    taking = replace(_applied(snapshot, onto=_running()), phase=snapshot.phase)
    waiting = plan(asked, taking)
    assert (waiting.step, waiting.reason) == (Step.IDLE, "TakingSnapshot")


@pytest.mark.parametrize(("phase", "cleared"), [("Succeeded", "3.6.17"), ("Failed", "")])
def test_the_snapshot_fails_closed(phase: str, cleared: str) -> None:
    asked = replace(NEW, upgrade=UpgradeSpec())
    seen = _applied(plan(asked, _running()), onto=_running())
    name = next(key for key in seen.objects if key.startswith("EtcdBackup/"))
    backup = seen.objects[name] | {"status": {"phase": phase, "message": "The claim is full."}}
    answer = plan(asked, replace(seen, objects={**seen.objects, name: backup}))
    assert (answer.step, answer.cleared) == (Step.IDLE, cleared)
    assert ("The claim is full." in answer.message) == (phase == "Failed")


def test_a_version_that_can_not_be_reached_is_refused_and_nothing_moves() -> None:
    refused = plan(replace(CLUSTER, version="3.5.35"), _running())
    assert (refused.phase, refused.reason, refused.step) == (Phase.UNSUPPORTED, "VersionRefused", Step.IDLE)


def test_an_alarm_holds_an_upgrade_up() -> None:
    seen = _running()
    answer = seen.answers["example-1"]
    assert answer.status
    alarmed = replace(answer, status=replace(answer.status, errors=("memberID:1 alarm:NOSPACE",)))
    waits = plan(NEW, replace(seen, answers={**seen.answers, "example-1": alarmed}))
    assert (waits.reason, waits.step, waits.cleared) == ("UpgradeWaits", Step.IDLE, "")
