"""Scaling and member replacement, compared with the restart of one pod of a hand-made StatefulSet."""

from __future__ import annotations

import os
import signal
import time

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.fanout import ask_all

from sandbox.run import say, wait_for
from tests.e2e.fixtures.containers import first_process
from tests.e2e.traffic import writer

from . import clusters, figures
from .bootstrap import same_objects
from .figures import Figures, Membership
from .kube import TIMEOUT, apply, is_healthy_with, namespace, seconds_until_healthy
from .members import NAME, Members, delete_pod, members_of, wait_until_settled

_REST = 6.0  # seconds: etcd rejects a new member for 5 s after a voter has connected
_BEFORE, _AFTER = 2.0, 6.0  # seconds that the writer runs before and after a member is killed


def membership(rounds: int = 3) -> Figures:
    """Measure each membership change several times."""
    with namespace(f"{clusters.PREFIX}membership-by-hand") as where:
        say("measuring a hand-made StatefulSet")
        apply(*same_objects(where, NAME, 3))
        seconds_until_healthy(where, [NAME], 3, time.monotonic())
        members = members_of(where)
        pods = [delete_pod(members, with_claim=False) for _ in range(rounds)]
        gaps = [_gaps(members) for _ in range(rounds)]
    with namespace(f"{clusters.PREFIX}membership") as where:
        say("measuring a cluster of the operator")
        apply(clusters.cluster(where, NAME))
        wait_until_settled(where)
        members = members_of(where)
        kept, lost, grown, shrunk, own_gaps = [], [], [], [], []
        for _ in range(rounds):
            kept.append(delete_pod(members, with_claim=False))
            wait_until_settled(where)
            lost.append(delete_pod(members, with_claim=True))
            wait_until_settled(where)
            time.sleep(_REST)
            grown.append(_resize(members, 5))
            wait_until_settled(where)
            shrunk.append(_resize(members, 3))
            wait_until_settled(where)
            own_gaps.append(_gaps(members))
            wait_until_settled(where)
    return figures.membership(
        Membership(
            pod_by_hand_s=tuple(pods),
            pod_s=tuple(kept),
            data_s=tuple(lost),
            grow_s=tuple(grown),
            shrink_s=tuple(shrunk),
            leader_gap_by_hand_s=tuple(leader for leader, _ in gaps),
            leader_gap_s=tuple(leader for leader, _ in own_gaps),
            follower_gap_by_hand_s=tuple(follower for _, follower in gaps),
            follower_gap_s=tuple(follower for _, follower in own_gaps),
        )
    )


def _resize(members: Members, size: int) -> float:
    """Seconds from a change of spec.size until etcd has that many voters and status.size matches."""
    started = time.monotonic()
    members.kube.apply(clusters.cluster(members.where, NAME, size))
    wait_for(f"{size} healthy members", lambda: _has_size(members, size), timeout=TIMEOUT, every=0.05)
    return time.monotonic() - started


def _has_size(members: Members, size: int) -> bool:
    """Whether the cluster has this size. Ignores pods of removed members, which may still be terminating."""
    resource = members.kube.get("EtcdCluster", members.where, NAME) or {}
    if resource.get("status", {}).get("size") != size or not clusters.is_observed(resource):
        return False
    expected = {f"{NAME}-{ordinal}" for ordinal in range(size)}
    clients = members.clients([pod for pod in members.pods() if pod["metadata"]["name"] in expected])
    answers = ask_all(clients, is_healthy_with(size))
    return len(clients) == size and all(not isinstance(answer, EtcdError) and answer for answer in answers)


def _gaps(members: Members) -> tuple[float, float]:
    """Longest gap between two acknowledged writes when the leader is killed, and when a follower is killed."""
    return _gap(members, leader=True), _gap(members, leader=False)


def _gap(members: Members, *, leader: bool) -> float:
    wait_for("three healthy members", lambda: members.are_healthy(3), timeout=TIMEOUT, every=0.2)
    writer.start(members.where, NAME)
    time.sleep(_BEFORE)
    victim = members.leader_and_follower()[0 if leader else 1]
    container: str = victim["status"]["containerStatuses"][0]["containerID"]
    os.kill(first_process(container.rpartition("//")[2]), signal.SIGKILL)
    time.sleep(_AFTER)
    return writer.end(members.where, NAME).longest_gap_s
