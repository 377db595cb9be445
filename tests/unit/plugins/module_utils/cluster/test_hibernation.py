"""Stopping all members and starting them again, without losing anything."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import member_config
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    SealConfiguration,
    StartMembers,
    StopMembers,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Certificates, Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import SETTLED

from .builders import CLUSTER, action_of, applied, claim, object_of, planned, running, without_object, without_quorum

ASLEEP = replace(CLUSTER, size=0)


def _stopped() -> Observation:
    observed = running()
    return without_quorum(replace(applied(observed, planned(ASLEEP, observed)), pods=()))


def test_cluster_hibernates_and_wakes_with_its_members() -> None:
    stop = planned(ASLEEP, running())
    assert (stop.phase, stop.reason) == (Phase.HIBERNATED, Reason.HIBERNATING)
    assert isinstance(stop.action, StopMembers)
    assert object_of(stop, "StatefulSet")["spec"]["replicas"] == 0
    asleep = planned(ASLEEP, _stopped())
    assert (asleep.phase, asleep.reason, asleep.action) == (Phase.HIBERNATED, Reason.HIBERNATED, None)
    assert asleep.requeue == SETTLED
    wake = planned(CLUSTER, _stopped())
    assert (wake.phase, wake.reason) == (Phase.STARTING, Reason.WAKING)
    assert isinstance(wake.action, StartMembers)
    assert object_of(wake, "StatefulSet")["spec"]["replicas"] == 3
    for name, text in applied(_stopped(), wake).objects["ConfigMap/e-config"]["data"].items():
        assert member_config.is_sealed(CLUSTER, name.removesuffix(".yaml"), text)


def test_cluster_wakes_with_the_members_it_had_whatever_the_new_size() -> None:
    wake = planned(replace(CLUSTER, size=5), _stopped())
    assert object_of(wake, "StatefulSet")["spec"]["replicas"] == 3


def test_members_with_data_wake_without_their_configuration() -> None:
    """Their PVCs tell who they are, also when those have gaps."""
    stopped = without_object(_stopped(), "ConfigMap")
    wake = planned(CLUSTER, replace(stopped, claims=(*stopped.claims[1:], claim(7, "another"))))
    assert sorted(object_of(wake, "ConfigMap")["data"]) == ["e-1.yaml", "e-2.yaml"]
    assert object_of(wake, "StatefulSet")["spec"]["replicas"] == 3


def test_configuration_is_sealed_before_members_stop() -> None:
    stop = planned(ASLEEP, running(opened=[2]))
    assert [each["kind"] for each in action_of(stop, StopMembers).objects] == ["ConfigMap", "StatefulSet"]
    stopping = without_object(applied(running(opened=[2]), planned(ASLEEP, running())), "ConfigMap")
    opened = {"ConfigMap/e-config": running(opened=[2]).objects["ConfigMap/e-config"]}
    late = planned(ASLEEP, replace(stopping, objects={**stopping.objects, **opened}))
    assert (late.reason, late.phase) == (Reason.HIBERNATING, Phase.HIBERNATED)
    assert isinstance(late.action, SealConfiguration)


def test_expired_certificates_are_issued_when_the_cluster_wakes() -> None:
    due = replace(_stopped(), certificates=Certificates(due=("e-server-tls",)))
    assert action_of(planned(CLUSTER, due), StartMembers).issue_certificates is True
    assert action_of(planned(CLUSTER, _stopped()), StartMembers).issue_certificates is False


def test_no_member_runs_while_an_etcdrestore_holds_the_cluster() -> None:
    held = replace(CLUSTER, held_by="again")
    stop = planned(held, running())
    assert (stop.phase, stop.reason) == (Phase.RESTORING, Reason.RESTORING)
    assert action_of(stop, StopMembers).objects[0]["spec"]["replicas"] == 0
    assert "EtcdRestore again" in stop.message
    assert "remove the annotation etcdops.dev/restore" in stop.message
    still_there = planned(held, replace(_stopped(), pods=running().pods))
    assert (still_there.action, still_there.requeue) == (None, 1)
    stopped = planned(held, _stopped())
    assert (stopped.phase, stopped.action, stopped.requeue) == (Phase.RESTORING, None, 5)


def test_orphaned_pods_are_stopped_through_a_new_stateful_set() -> None:
    orphaned = without_object(running(), "StatefulSet")
    for cluster in (ASLEEP, replace(CLUSTER, held_by="again")):
        assert object_of(planned(cluster, orphaned), "StatefulSet")["spec"]["replicas"] == 0


def test_members_that_are_held_stop_without_the_edits_of_the_spec() -> None:
    """Nobody has looked at them yet: their image may not be allowed."""
    held = replace(CLUSTER, held_by="again", repository="evil.example/etcd")
    live = running().objects["StatefulSet/e"]
    (stop,) = action_of(planned(held, running()), StopMembers).objects
    assert stop["spec"]["template"] == live["spec"]["template"]
