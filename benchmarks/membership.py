"""Members that come, go and are lost, against one pod of a hand-made StatefulSet that is deleted and comes back."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import Client, Endpoint, EtcdError, Tls, ask_all
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import Kube, Manifest

from proof import writer
from proof.lose import process
from sandbox.errors import SandboxError
from sandbox.run import say, wait_for

from . import clusters, figures
from .bootstrap import same_objects
from .figures import Figures, Membership
from .kube import TIMEOUT, api, apply, is_whole, namespace, read_tls, seconds_until_healthy, wait_for_all

_NAME = "bench"
_REST = 6.0  # for five seconds after one has come, etcd takes no further member
_BEFORE, _AFTER = 2.0, 6.0  # seconds that the writer has before a member is killed, and after


@dataclass(frozen=True)
class _Members:
    """A cluster whose members are asked often."""

    kube: Kube
    tls: Tls
    where: str

    def pods(self) -> list[Manifest]:
        return self.kube.list("Pod", self.where, f"etcdops.dev/cluster={_NAME}")

    def clients(self, pods: list[Manifest]) -> list[Client]:
        return [
            Client(Endpoint(f"https://{name}.{_NAME}-peers.{self.where}.svc:2379", address), self.tls, timeout=2)
            for name, address in ((pod["metadata"]["name"], pod["status"].get("podIP")) for pod in pods)
            if address
        ]

    def are_whole(self, size: int, gone: str = "") -> bool:
        """Do `size` voters serve, each in a pod of its own, and none in the pod that has the uid `gone`?"""
        pods = self.pods()
        clients = self.clients(pods)
        if len(clients) != size or len(pods) != size or any(pod["metadata"]["uid"] == gone for pod in pods):
            return False
        return all(not isinstance(answer, EtcdError) and answer for answer in ask_all(clients, is_whole(size)))

    def leader_and_follower(self) -> tuple[Manifest, Manifest]:
        pods = self.pods()
        for pod, answer in zip(pods, ask_all(self.clients(pods), _leads), strict=True):
            if answer is True:
                return pod, next(other for other in pods if other is not pod)
        raise SandboxError(f"No member of {self.where}/{_NAME} leads.")


def membership(rounds: int = 3) -> Figures:
    """Every change of a cluster, a few times each."""
    with namespace(f"{clusters.PREFIX}membership-by-hand") as where:
        say("a hand-made StatefulSet")
        apply(*same_objects(where, _NAME, 3))
        seconds_until_healthy(where, [_NAME], 3, time.monotonic())
        members = _members(where)
        pods = [_delete_pod(members, with_claim=False) for _ in range(rounds)]
        gaps = [_gaps(members) for _ in range(rounds)]
    with namespace(f"{clusters.PREFIX}membership") as where:
        say("the same by the operator")
        apply(clusters.cluster(where, _NAME))
        _settled(where)
        members = _members(where)
        kept, lost, grown, shrunk, own_gaps = [], [], [], [], []
        for _ in range(rounds):
            kept.append(_delete_pod(members, with_claim=False))
            _settled(where)
            lost.append(_delete_pod(members, with_claim=True))
            _settled(where)
            time.sleep(_REST)
            grown.append(_resize(members, 5))
            _settled(where)
            shrunk.append(_resize(members, 3))
            _settled(where)
            own_gaps.append(_gaps(members))
            _settled(where)
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


def _members(where: str) -> _Members:
    with tempfile.TemporaryDirectory() as folder:
        return _Members(api(), read_tls(Path(folder) / "tls", where, _NAME), where)


def _settled(where: str) -> None:
    wait_for_all(where, [_NAME], "settled", clusters.is_settled)


def _leads(client: Client) -> bool:
    with client:
        status = client.status()
        return status.leader_id == status.member_id


def _delete_pod(members: _Members, *, with_claim: bool) -> float:
    """Seconds from deleting a follower's pod, and its claim, until three voters serve."""
    _, follower = members.leader_and_follower()
    name, uid = follower["metadata"]["name"], follower["metadata"]["uid"]
    started = time.monotonic()
    if with_claim:
        members.kube.delete("PersistentVolumeClaim", members.where, f"data-{name}")
    members.kube.delete("Pod", members.where, name, uid)
    wait_for(f"{name} to be back", lambda: members.are_whole(3, gone=uid), timeout=TIMEOUT, every=0.05)
    return time.monotonic() - started


def _resize(members: _Members, size: int) -> float:
    """Seconds from a change of the size until there are so many voters, and the status says so."""
    started = time.monotonic()
    members.kube.apply(clusters.cluster(members.where, _NAME, size))
    wait_for(f"{size} members", lambda: _has_size(members, size), timeout=TIMEOUT, every=0.05)
    return time.monotonic() - started


def _has_size(members: _Members, size: int) -> bool:
    """A pod whose member was removed may still be on its way out."""
    resource = members.kube.get("EtcdCluster", members.where, _NAME) or {}
    if resource.get("status", {}).get("size") != size or not clusters.is_observed(resource):
        return False
    staying = {f"{_NAME}-{ordinal}" for ordinal in range(size)}
    clients = members.clients([pod for pod in members.pods() if pod["metadata"]["name"] in staying])
    answers = ask_all(clients, is_whole(size))
    return len(clients) == size and all(not isinstance(answer, EtcdError) and answer for answer in answers)


def _gaps(members: _Members) -> tuple[float, float]:
    """The longest gap between two acknowledged writes when the leader is killed, and when a follower is."""
    return _gap(members, leader=True), _gap(members, leader=False)


def _gap(members: _Members, *, leader: bool) -> float:
    wait_for("three members", lambda: members.are_whole(3), timeout=TIMEOUT, every=0.2)
    writer.start(members.where, _NAME)
    time.sleep(_BEFORE)
    victim = members.leader_and_follower()[0 if leader else 1]
    container: str = victim["status"]["containerStatuses"][0]["containerID"]
    os.kill(process(container.rpartition("//")[2]), signal.SIGKILL)
    time.sleep(_AFTER)
    return writer.end(members.where, _NAME).longest_gap_s
