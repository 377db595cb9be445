"""etcd client API of the model's members, as the operator uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import (
    FAILED_PRECONDITION,
    INVALID_ARGUMENT,
    UNAVAILABLE,
    EtcdError,
    Unreachable,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.fanout import on_any
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import Change
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member, MemberList, Status
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import parse

from .etcd import CLUSTER_ID, Process
from .invariants import Invariants
from .kubernetes import Kubernetes


@dataclass
class Connection:
    """Connection to the pods that have an address. Those in `unreachable` do not answer in time."""

    kubernetes: Kubernetes
    invariants: Invariants
    cluster: Cluster
    unreachable: frozenset[str] = frozenset()
    timeout: float = 1.0
    endpoints: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        pods = [pod for pod in self.kubernetes.pods.values() if pod.node]
        self.endpoints = {self.cluster.client_url(pod.name): pod.name for pod in pods}

    def client(self, url: str) -> Client:
        pod = self.kubernetes.pods.get(self.endpoints[url])
        down = pod is None or pod.process is None or not pod.process.connected or pod.name in self.unreachable
        return Client(self, url, None if down or pod is None else pod.process)

    def ask_all(self, urls: Sequence[str], question: Callable[[Any], Any], _deadline: float) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for url in urls:
            try:
                found[url] = question(self.client(url))
            except EtcdError as error:
                found[url] = error
        return found

    def on_any(self, urls: Sequence[str], request: Callable[[Any], Any]) -> Any:
        return on_any([self.client(url) for url in urls], request)

    def close(self) -> None:
        pass


@dataclass
class Client:
    connection: Connection
    url: str
    process: Process | None

    @property
    def _answering(self) -> Process:
        if self.process is None:
            raise Unreachable("no answer", self.url)
        if self.connection.kubernetes.etcd.auth == "everything":
            raise EtcdError(INVALID_ARGUMENT, "etcdserver: user name is empty", self.url)
        return self.process

    def _require_permission(self) -> None:
        self._require_leader()
        if self.connection.kubernetes.etcd.auth:
            raise EtcdError(FAILED_PRECONDITION, "etcdserver: user name not found", self.url)

    @property
    def _is_healthy(self) -> bool:
        etcd, process = self.connection.kubernetes.etcd, self._answering
        return process.data.cluster == CLUSTER_ID and etcd.is_healthy(process)

    def _require_leader(self) -> None:
        if not self._is_healthy:
            raise EtcdError(UNAVAILABLE, "etcdserver: no leader", self.url)

    # -- reading

    def status(self) -> Status:
        return self.connection.kubernetes.etcd.status(self._answering, healthy=self._is_healthy)

    def members(self, linearizable: bool = True) -> MemberList:
        if linearizable:
            self._require_leader()
        return self.connection.kubernetes.etcd.member_list

    def health(self) -> bool:
        self._require_leader()
        return not self.connection.kubernetes.etcd.auth

    def cluster_version(self) -> str:
        minor = self.connection.kubernetes.etcd.cluster_minor
        return f"3.{minor}.0" if minor else ""

    # -- changing

    def member_add(self, peer_urls: Sequence[str], learner: bool) -> Member:
        etcd, now = self.connection.kubernetes.etcd, self.connection.kubernetes.now
        self._require_permission()
        added = Member(0, "", tuple(peer_urls), (), learner)
        had_quorum = etcd.has_quorum
        number = etcd.add(added.peer_urls, learner=learner, now=now)
        self._changed(Change("add", added), had_quorum)
        return etcd.members[number]

    def member_promote(self, member_id: int) -> MemberList:
        return self._change("promote", member_id)

    def member_remove(self, member_id: int) -> MemberList:
        return self._change("remove", member_id)

    def _change(self, action: str, member_id: int) -> MemberList:
        etcd, now = self.connection.kubernetes.etcd, self.connection.kubernetes.now
        self._require_permission()
        member, had_quorum = etcd.members[member_id], etcd.has_quorum
        if action == "promote":
            etcd.promote(member_id)
        else:
            etcd.remove(member_id, now=now)
        self._changed(Change(action, member), had_quorum)
        return etcd.member_list

    def _changed(self, change: Change, had_quorum: bool) -> None:
        self.connection.invariants.say(f"  {change.action} {change.member.id:x} {', '.join(change.member.peer_urls)}")
        self.connection.invariants.after_change(change, had_quorum=had_quorum)

    def move_leader(self, target_id: int) -> None:
        etcd, process = self.connection.kubernetes.etcd, self._answering
        self._require_permission()
        if process.data.member != etcd.leader:
            raise EtcdError(FAILED_PRECONDITION, "etcdserver: not leader", self.url)
        if etcd.process(target_id) is None:
            raise EtcdError(UNAVAILABLE, "etcdserver: request timed out", self.url)
        self.connection.invariants.say(f"  leadership moved to {target_id:x}")
        etcd.leader, etcd.term = target_id, etcd.term + 1

    def downgrade(self, action: str, version: str) -> None:
        self._require_permission()
        self.connection.kubernetes.etcd.set_downgrade(parse(version).minor if action == "ENABLE" else 0)
