"""Members that come, go and are lost, against one pod of a hand-made StatefulSet that is deleted and comes back."""

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
from .kube import TIMEOUT, apply, is_whole, namespace, seconds_until_healthy
from .members import NAME, Members, delete_pod, members_of, settled

_REST = 6.0  # for five seconds after one has come, etcd takes no further member
_BEFORE, _AFTER = 2.0, 6.0  # seconds that the writer has before a member is killed, and after


def membership(rounds: int = 3) -> Figures:
    """Every change of a cluster, a few times each."""
    with namespace(f"{clusters.PREFIX}membership-by-hand") as where:
        say("a hand-made StatefulSet")
        apply(*same_objects(where, NAME, 3))
        seconds_until_healthy(where, [NAME], 3, time.monotonic())
        members = members_of(where)
        pods = [delete_pod(members, with_claim=False) for _ in range(rounds)]
        gaps = [_gaps(members) for _ in range(rounds)]
    with namespace(f"{clusters.PREFIX}membership") as where:
        say("the same by the operator")
        apply(clusters.cluster(where, NAME))
        settled(where)
        members = members_of(where)
        kept, lost, grown, shrunk, own_gaps = [], [], [], [], []
        for _ in range(rounds):
            kept.append(delete_pod(members, with_claim=False))
            settled(where)
            lost.append(delete_pod(members, with_claim=True))
            settled(where)
            time.sleep(_REST)
            grown.append(_resize(members, 5))
            settled(where)
            shrunk.append(_resize(members, 3))
            settled(where)
            own_gaps.append(_gaps(members))
            settled(where)
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
    """Seconds from a change of the size until there are so many voters, and the status says so."""
    started = time.monotonic()
    members.kube.apply(clusters.cluster(members.where, NAME, size))
    wait_for(f"{size} members", lambda: _has_size(members, size), timeout=TIMEOUT, every=0.05)
    return time.monotonic() - started


def _has_size(members: Members, size: int) -> bool:
    """A pod whose member was removed may still be on its way out."""
    resource = members.kube.get("EtcdCluster", members.where, NAME) or {}
    if resource.get("status", {}).get("size") != size or not clusters.is_observed(resource):
        return False
    staying = {f"{NAME}-{ordinal}" for ordinal in range(size)}
    clients = members.clients([pod for pod in members.pods() if pod["metadata"]["name"] in staying])
    answers = ask_all(clients, is_whole(size))
    return len(clients) == size and all(not isinstance(answer, EtcdError) and answer for answer in answers)


def _gaps(members: Members) -> tuple[float, float]:
    """The longest gap between two acknowledged writes when the leader is killed, and when a follower is."""
    return _gap(members, leader=True), _gap(members, leader=False)


def _gap(members: Members, *, leader: bool) -> float:
    wait_for("three members", lambda: members.are_whole(3), timeout=TIMEOUT, every=0.2)
    writer.start(members.where, NAME)
    time.sleep(_BEFORE)
    victim = members.leader_and_follower()[0 if leader else 1]
    container: str = victim["status"]["containerStatuses"][0]["containerID"]
    os.kill(first_process(container.rpartition("//")[2]), signal.SIGKILL)
    time.sleep(_AFTER)
    return writer.end(members.where, NAME).longest_gap_s
