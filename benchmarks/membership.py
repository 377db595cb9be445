"""Scaling and member replacement, compared with the restart of one pod of a hand-made StatefulSet."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.fanout import ask_all

from sandbox.run import say, wait_for
from tests.e2e.fixtures.containers import first_process

from . import clusters, figures
from .bootstrap import same_objects
from .figures import Figures, Membership
from .kube import TIMEOUT, apply, is_healthy_with, namespace, seconds_until_healthy
from .members import NAME, Members, Result, delete_pod, fill_database, members_of, wait_until_settled, while_writing

_REST = 6.0  # seconds: etcd rejects a new member for 5 s after a voter has connected


def membership(rounds: int = 3) -> Figures:
    """Measure each membership change several times, while a client writes."""
    with namespace(f"{clusters.PREFIX}membership-by-hand") as where:
        say("measuring a hand-made StatefulSet")
        apply(*same_objects(where, NAME, 3))
        seconds_until_healthy(where, [NAME], 3, time.monotonic())
        fill_database(where)
        members = members_of(where)
        pods = [_seconds(members, lambda: delete_pod(members)) for _ in range(rounds)]
        gaps = [_gaps(members) for _ in range(rounds)]
    with namespace(f"{clusters.PREFIX}membership") as where:
        say("measuring a cluster of the operator")
        apply(clusters.cluster(where, NAME))
        wait_until_settled(where)
        fill_database(where)
        members = members_of(where)
        kept, lost, grown, shrunk, own_gaps = [], [], [], [], []
        for _ in range(rounds):
            kept.append(_seconds(members, lambda: delete_pod(members)))
            wait_until_settled(where)
            lost.append(_seconds(members, lambda: delete_pod(members, with_claim=True)))
            wait_until_settled(where)
            time.sleep(_REST)
            grow, shrink = _seconds(members, lambda: _there_and_back(members))
            grown.append(grow)
            shrunk.append(shrink)
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


def _seconds(members: Members, operation: Callable[[], Result]) -> Result:
    """What an operation takes while a client writes."""
    return while_writing(members, operation)[0]


def _there_and_back(members: Members) -> tuple[float, float]:
    """Seconds for 3 → 5 and for 5 → 3."""
    grow = _resize(members, 5)
    wait_until_settled(members.where)
    return grow, _resize(members, 3)


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
    return while_writing(members, lambda: _kill(members, leader=leader))[1].gap_s


def _kill(members: Members, *, leader: bool) -> None:
    victim = members.leader_and_follower()[0 if leader else 1]
    container: str = victim["status"]["containerStatuses"][0]["containerID"]
    os.kill(first_process(container.rpartition("//")[2]), signal.SIGKILL)
