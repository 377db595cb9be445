"""Rolls: one member at a time, followers first, and nothing while somebody is not well."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, Storage
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import manifests
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Answer, Node, Observed
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Step
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.planner import plan
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.rollout import Voter, gate, heir, order

from .clusters import CLUSTER, NOW, answer, answering, applied, running, without

OTHER = replace(CLUSTER, options={"snapshotCount": 5000}, generation=2)
DOWN = Answer(None, healthy=False, error="refused")


def changed(cluster: Cluster, seen: Observed) -> Observed:
    """After the objects were brought to what the spec asks for."""
    planned = plan(cluster, seen)
    assert (planned.reason, planned.step) == ("ChangingSettings", Step.UPDATE)
    return replace(applied(seen, planned), phase=planned.phase)


def restarted(cluster: Cluster, seen: Observed, name: str, *, well: bool = True) -> Observed:
    """After one pod came back as the StatefulSet makes it now."""
    made = manifests.template_hash(seen.objects[f"StatefulSet/{cluster.name}"])
    old = seen.pod(name)
    assert old
    new = replace(old, template_hash=made, version=cluster.version, created=NOW)
    pods = tuple(new if pod.name == name else pod for pod in seen.pods)
    status = seen.answers[name].status
    assert status
    told = Answer(replace(status, version=cluster.version), True, "", "3.6.0") if well else DOWN
    return replace(seen, pods=pods, answers={**seen.answers, name: told})


def test_followers_first_the_leader_last_and_then_done() -> None:
    seen, order_of = changed(OTHER, running()), []
    for _ in range(3):
        step = plan(OTHER, seen)
        assert (step.phase, step.step) == (Phase.RESTARTING, Step.ROLL)
        order_of.append((step.restart, step.lead))
        seen = restarted(OTHER, seen, step.restart)
    assert order_of == [("e-2", ""), ("e-1", ""), ("e-0", "2")]  # e-0 has led; now one that is new
    done = plan(OTHER, seen)
    assert (done.phase, done.step) == (Phase.RUNNING, Step.IDLE)


def test_it_is_the_very_pod_that_was_seen() -> None:
    assert plan(OTHER, changed(OTHER, running())).restart_uid == "pod-2"


def test_nobody_restarts_while_another_is_not_well() -> None:
    seen = restarted(OTHER, changed(OTHER, running()), "e-2", well=False)
    waiting = plan(OTHER, seen)
    assert (waiting.phase, waiting.step, waiting.reason) == (Phase.RESTARTING, Step.IDLE, "WaitingForMember")
    stopped = plan(OTHER, replace(seen, now=NOW + timedelta(minutes=3)))
    assert (stopped.step, stopped.reason) == (Step.IDLE, "RollStopped")
    assert "e-2" in stopped.message


def test_a_problem_that_is_told_stops_a_roll_sooner_than_silence() -> None:
    seen = restarted(OTHER, changed(OTHER, running()), "e-2", well=False)
    told = "ErrImagePull: no such image"
    pods = tuple(replace(pod, problem=told if pod.name == "e-2" else "") for pod in seen.pods)
    later = replace(seen, pods=pods, now=NOW + timedelta(seconds=20))
    assert plan(OTHER, replace(later, now=NOW + timedelta(seconds=5))).reason == "WaitingForMember"
    stopped = plan(OTHER, later)
    assert stopped.reason == "RollStopped"
    assert told in stopped.message
    nowhere = tuple(replace(pod, scheduled=pod.name != "e-2") for pod in pods)
    assert plan(OTHER, replace(later, pods=nowhere)).reason == "WaitingForMember"
    assert plan(OTHER, replace(seen, now=later.now)).reason == "WaitingForMember"


def test_nobody_restarts_while_another_pod_is_going() -> None:
    seen = changed(OTHER, running())
    pods = tuple(replace(pod, deleting=pod.name == "e-1") for pod in seen.pods)
    assert plan(OTHER, replace(seen, pods=pods)).reason == "WaitingForMember"


def test_nobody_restarts_while_another_is_behind() -> None:
    seen = answering(changed(OTHER, running()), {0: answer(1, 10_000), 1: answer(2, 10_000), 2: answer(3, 4_000)})
    assert plan(OTHER, seen).restart == "e-2"  # it is the one that is behind
    seen = answering(seen, {2: answer(3, 10_000), 1: answer(2, 4_000)})
    assert (plan(OTHER, seen).reason, plan(OTHER, seen).restart) == ("WaitingForMember", "")


def test_a_change_that_went_wrong_is_taken_back_where_it_did_first() -> None:
    seen = restarted(OTHER, changed(OTHER, running()), "e-2", well=False)
    seen = replace(without(seen, 2, problem="ImagePullBackOff"), now=NOW + timedelta(minutes=3))
    step = plan(CLUSTER, changed(CLUSTER, seen))
    assert (step.step, step.restart, step.lead) == (Step.ROLL, "e-2", "")


@pytest.mark.parametrize(("node", "restart"), [(Node.UNREACHABLE, ""), (Node.GONE, ""), (Node.WELL, "e-2")])
def test_who_is_silent_restarts_only_if_its_node_can_do_it(node: Node, restart: str) -> None:
    seen = without(changed(OTHER, running()), 2, node=node)
    late = replace(seen, now=NOW + timedelta(minutes=5), degraded_since=NOW)
    assert plan(OTHER, late).restart == restart


def test_who_is_down_and_was_not_restarted_is_not_blamed_on_the_spec() -> None:
    seen = without(changed(OTHER, running()), 1, node=Node.UNREACHABLE)
    waiting = plan(OTHER, replace(seen, now=NOW + timedelta(minutes=5)))
    assert (waiting.step, waiting.reason) == (Step.IDLE, "WaitingForMember")
    assert "e-1" in waiting.message
    assert "spec" not in waiting.message


def test_one_answer_that_was_missed_is_no_reason_to_restart() -> None:
    seen = without(changed(OTHER, running()), 2, node=Node.WELL)
    assert plan(OTHER, replace(seen, now=NOW + timedelta(minutes=5))).restart == ""


def test_two_members_of_three_are_made_three_before_anyone_restarts() -> None:
    seen = running(range(2), replicas=3)
    assert plan(OTHER, replace(seen, pods=seen.pods[:2])).add == "e-2"


def test_who_has_its_data_in_memory_is_replaced() -> None:
    memory = replace(OTHER, storage=Storage("Memory"))
    was = replace(CLUSTER, storage=Storage("Memory"))
    seen = replace(running(), claims=())
    objects = manifests.objects(was, 3, dict(seen.objects["ConfigMap/e-config"]["data"]), 3)
    seen = replace(seen, objects={f"{each['kind']}/{each['metadata']['name']}": each for each in objects})
    step = plan(memory, changed(memory, seen))
    assert (step.step, step.add, step.remove, step.restart) == (Step.JOIN, "e-2", "3", "")
    assert step.phase is Phase.RESTARTING


def voter(number: int, **known: bool | int) -> Voter:
    return Voter(number, f"m{number}", bool(known.pop("healthy", True)), place=number, **known)  # type: ignore[arg-type]


def test_the_order() -> None:
    voters = [voter(0, leads=True), voter(1), voter(2, healthy=False), voter(3), voter(4, renewed=True)]
    assert [each.name for each in order(voters)] == ["m2", "m3", "m1", "m0"]


def test_an_heir_is_renewed_if_there_is_one_and_knows_most() -> None:
    leader = voter(0, leads=True, applied=90)
    others = [voter(1, applied=90), voter(2, applied=80, renewed=True), voter(3, applied=70, renewed=True)]
    assert heir([leader, *others], leader) == others[1]
    assert heir([leader, others[0]], leader) == others[0]
    assert heir([leader], leader) is None


@pytest.mark.parametrize(
    ("voters", "said"),
    [
        ([voter(0), voter(1), voter(2, healthy=False)], "m2 does not serve"),
        ([voter(0), voter(1, applied=9_000), voter(2)], "m2 is not in sync"),
        ([voter(0, healthy=False), voter(1), voter(2, healthy=False)], "only 1 of 3 voters would be left"),
        ([voter(0, leads=True, applied=9_000), voter(1)], "m1 is not in sync"),
    ],
)
def test_the_gate_is_shut(voters: list[Voter], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        gate(voters, "m0")


def test_the_gate_is_open() -> None:
    assert gate([voter(0), voter(1), voter(2)], "m0") is None
    assert gate([voter(0, healthy=False), voter(1), voter(2)], "m0") is None  # it serves nobody anyway
    assert gate([voter(0, leads=True)], "m0") is None  # who is alone can't hand over
    led = [voter(0, leads=True), voter(1), voter(2)]
    assert gate(led, "m0", lead=2) == led[2]
