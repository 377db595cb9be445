"""Access to the members of a measured cluster, whether or not the operator manages it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.client import Client
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.endpoint import Endpoint, Tls
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.fanout import ask_all
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from sandbox.errors import SandboxError
from sandbox.run import say, wait_for
from tests.e2e.traffic import fill, writer

from . import clusters
from .figures import Writing
from .kube import TIMEOUT, api, is_healthy_with, read_tls, wait_for_all

Result = TypeVar("Result")

NAME = "bench"
_MIB = 64  # size of a database that is not trivial to copy
_BEFORE, _AFTER = 2.0, 4.0  # seconds that the writer runs before and after the operation


@dataclass(frozen=True)
class Members:
    kube: Kube
    tls: Tls
    where: str

    def pods(self) -> list[Manifest]:
        return self.kube.list("Pod", self.where, f"etcdops.dev/cluster={NAME}")

    def clients(self, pods: list[Manifest]) -> list[Client]:
        return [
            Client(Endpoint(f"https://{name}.{NAME}-peers.{self.where}.svc:2379", address), self.tls, timeout=2)
            for name, address in ((pod["metadata"]["name"], pod["status"].get("podIP")) for pod in pods)
            if address
        ]

    def are_healthy(self, size: int, deleted_uid: str = "") -> bool:
        """Whether there are exactly `size` pods with a healthy voter each, none of them the deleted pod."""
        pods = self.pods()
        clients = self.clients(pods)
        if len(clients) != size or len(pods) != size or any(pod["metadata"]["uid"] == deleted_uid for pod in pods):
            return False
        return all(not isinstance(answer, EtcdError) and answer for answer in ask_all(clients, is_healthy_with(size)))

    def leader_and_follower(self) -> tuple[Manifest, Manifest]:
        pods = self.pods()
        for pod, answer in zip(pods, ask_all(self.clients(pods), _is_leader), strict=True):
            if answer is True:
                return pod, next(other for other in pods if other is not pod)
        raise SandboxError(f"EtcdCluster {self.where}/{NAME} has no leader.")


def members_of(where: str) -> Members:
    with tempfile.TemporaryDirectory() as folder:
        return Members(api(), read_tls(Path(folder) / "tls", where, NAME), where)


def wait_until_settled(where: str) -> None:
    wait_for_all(where, [NAME], "settled", clusters.is_settled)


def _is_leader(client: Client) -> bool:
    with client:
        status = client.status()
        return status.leader_id == status.member_id


def delete_pod(members: Members, *, with_claim: bool = False, leader: bool = False) -> float:
    """Seconds from deleting a follower's or leader's pod, optionally with its PVC, until three voters are healthy."""
    victim = members.leader_and_follower()[0 if leader else 1]
    name, uid = victim["metadata"]["name"], victim["metadata"]["uid"]
    started = time.monotonic()
    if with_claim:
        members.kube.delete("PersistentVolumeClaim", members.where, f"data-{name}")
    members.kube.delete("Pod", members.where, name, {"uid": uid})
    wait_for(f"pod {name} to be replaced", lambda: members.are_healthy(3, deleted_uid=uid), timeout=TIMEOUT, every=0.05)
    return time.monotonic() - started


def fill_database(where: str) -> None:
    """Make the database large enough that a member that joins has something to copy."""
    say(f"filling the database with {_MIB} MiB")
    fill.fill(where, NAME, _MIB)


def while_writing(members: Members, operation: Callable[[], Result]) -> tuple[Result, Writing]:
    """Run an operation while a client writes; the result, and the effect on the client."""
    wait_for("three healthy members", lambda: members.are_healthy(3), timeout=TIMEOUT, every=0.2)
    writer.start(members.where, NAME)
    time.sleep(_BEFORE)
    result = operation()
    time.sleep(_AFTER)
    seen = writer.end(members.where, NAME)
    say(f"longest gap between writes: {seen.longest_gap_s} s; failed requests: {seen.failed} {seen.failures}")
    return result, Writing(seen.longest_gap_s, seen.failed)
