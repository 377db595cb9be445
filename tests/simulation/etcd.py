"""Model of etcd membership: the member list, running members and their data, the leader, and acknowledged writes.

A log is represented by its length: acknowledged writes are in the logs of a quorum, so a leader with a shorter log has
lost writes. The behaviour of members with and without data was verified with real etcd.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import (
    FAILED_PRECONDITION,
    UNAVAILABLE,
    EtcdError,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import quorum
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member, MemberList, Status
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import parse

CLUSTER_ID = 0xABC
_HEALTH_INTERVAL = 5  # seconds that a voter must be connected before etcd counts it as active

# Log tails of members that exit (tests/unit/plugins/module_utils/cluster/test_loss.py reads them from real etcd).
REMOVED = "the member has been permanently removed from the cluster"
NO_INFO = "cannot fetch cluster info from peer urls: could not retrieve cluster information from the given URLs"
UNEQUAL = "error validating peerURLs: member count is unequal"
BOOTSTRAPPED = "member has already been bootstrapped"
INCOMPATIBLE = '{"level":"fatal","msg":"discovery failed","error":"incompatible with current running cluster"}'
TOO_OLD = "invalid downgrade; server version is lower than determined cluster version"
OLD_LOG = (
    "go.etcd.io/etcd/pkg/v3/schedule.NewFIFOScheduler\n\tgo.etcd.io/etcd/pkg/v3@v3.7.3/schedule/schedule.go:101 +0x16f"
)
NO_SPACE = '{"level":"fatal","msg":"discovery failed","error":"write /var/lib/etcd: no space left on device"}'
CORRUPT = "go.etcd.io/bbolt.(*DB).freepages.func2()\n\tgo.etcd.io/bbolt@v1.4.3/db.go:1205 +0x6d"


class ViolationError(AssertionError):
    """An invariant was violated."""


@dataclass
class Data:
    """Content of a data directory."""

    cluster: int
    member: int
    log: int = 0
    corrupt: bool = False
    storage: int = 5  # the oldest minor version that can read it
    old_log: bool = False  # has entries that only 3.5 and 3.6 can read


@dataclass
class Volume:
    data: Data | None = None


@dataclass
class Process:
    """A running etcd."""

    pod: str
    data: Data
    since: int
    version: str
    connected: bool = True

    @property
    def minor(self) -> int:
        return parse(self.version).minor


@dataclass
class Etcd:
    random: Random
    members: dict[int, Member] = field(default_factory=dict)
    running: dict[int, Process] = field(default_factory=dict)  # by member ID
    voted: set[int] = field(default_factory=set)  # IDs of all members that have run as voters
    leader: int = 0
    term: int = 1
    acknowledged: int = 0
    cluster_minor: int = 0  # minor of the cluster version
    downgrade: int = 0  # minor of the pending downgrade target
    auth: str = ""  # that a user enabled: "changes" or "everything" is refused
    alarms: set[str] = field(default_factory=set)  # as a status reports them
    _next_id: int = 0x100

    # -- state

    def process(self, member_id: int) -> Process | None:
        found = self.running.get(member_id)
        return found if found and found.connected else None

    @property
    def voters(self) -> list[Member]:
        return [member for member in self.members.values() if not member.is_learner]

    @property
    def connected(self) -> list[Process]:
        """Processes of voters that are running and connected."""
        running = (self.running.get(member.id) for member in self.members.values() if not member.is_learner)
        return [one for one in running if one and one.connected]

    @property
    def has_quorum(self) -> bool:
        return bool(self.members) and len(self.connected) >= quorum(len(self.voters))

    @property
    def leader_process(self) -> Process | None:
        """Process of the leader, if it is connected to a quorum."""
        voters = self.connected
        if len(voters) < quorum(len(self.voters)):
            return None
        return next((one for one in voters if one.data.member == self.leader), None)

    def is_healthy(self, process: Process) -> bool:
        """Whether a voter answers a linearizable read, or a learner follows a leader."""
        return process.connected and process.data.member in self.members and self.leader_process is not None

    def status(self, process: Process, *, healthy: bool) -> Status:
        data, leader = process.data, self.leader if healthy else 0
        member = self.members.get(data.member)
        learner = member is not None and member.is_learner
        storage = f"3.{data.storage}.0" if process.minor > 5 else ""
        status = Status(
            data.member,
            data.cluster,
            process.version,
            storage,
            leader,
            self.term,
            data.log,
            data.log,
            1,
            1,
            1,
            learner,
            tuple(sorted(self.alarms)),
        )
        return replace(status, downgrade=f"3.{self.downgrade}.0") if self.downgrade and process.minor > 5 else status

    @property
    def member_list(self) -> MemberList:
        return MemberList(CLUSTER_ID, tuple(self.members.values()))

    # -- starting and stopping

    def start(self, pod: str, text: str, volume: Volume, now: int, version: str) -> Process | str:
        """Start etcd with this configuration and volume; the log tail if it exits immediately."""
        data, minor = volume.data, parse(version).minor
        if data is None:
            found = self._without_data(pod, minor, *read(text))
            if isinstance(found, str):
                return found
            data = volume.data = found
            data.storage = min(minor, self.cluster_minor or 5)  # written once the cluster version is decided
        if data.corrupt:
            return CORRUPT
        if data.cluster == CLUSTER_ID and minor < max(self.cluster_minor, data.storage):
            return TOO_OLD
        if minor > 6 and data.old_log:
            return OLD_LOG
        if data.cluster == CLUSTER_ID and data.member not in self.members and self.connected:
            return REMOVED
        process = Process(pod, data, now, version)
        data.old_log |= minor == 5
        self.running[data.member] = process
        if any(member.id == data.member for member in self.voters):
            self.voted.add(data.member)
        return process

    def stop(self, process: Process) -> None:
        del self.running[process.data.member]

    def _without_data(self, pod: str, minor: int, state: str, initial: dict[str, str]) -> Data | str:
        """Start of a member without data: its first start, or its data is lost."""
        reachable = any(self._at(url) for name, url in initial.items() if name != pod)
        if state == "new":
            if not self.members:
                listed = enumerate(initial.items(), 1)
                self.members = {number: Member(number, name, (url,), (), False) for number, (name, url) in listed}
            known = [member for member in self.members.values() if initial[pod] in member.peer_urls]
            if not known or (known[0].client_urls and reachable):
                return BOOTSTRAPPED if known else REMOVED
            member = known[0]
        else:
            if not reachable:
                return NO_INFO
            if sorted(initial.values()) != sorted(url for one in self.members.values() for url in one.peer_urls):
                return UNEQUAL
            if not self._may_join(minor):
                return INCOMPATIBLE
            member = next(member for member in self.members.values() if initial[pod] in member.peer_urls)
        if member.id in self.voted:
            raise ViolationError(
                f"no voter loses its data and keeps its ID: {pod} starts without data as {member.id:x}"
            )
        return Data(CLUSTER_ID, member.id)

    def _may_join(self, minor: int) -> bool:
        """By the cluster version. While a downgrade is pending, it must be exactly one above the new member's."""
        if not self.cluster_minor:
            return True
        return self.cluster_minor == minor + 1 if self.downgrade else self.cluster_minor <= minor

    def _at(self, url: str) -> Process | None:
        return next((one for m in self.members.values() if url in m.peer_urls and (one := self.process(m.id))), None)

    # -- spontaneous moves

    def moves(self) -> list[Callable[[], None]]:
        """Possible next steps of the members."""
        leader = self.leader_process
        if leader is None:
            self.leader = 0
            return [self._elect] if self.has_quorum else []
        following = [one for one in self.running.values() if one.connected and one.data.member in self.members]
        behind = [one for one in following if one.data.log < leader.data.log]
        unpublished = [one for one in following if not self.members[one.data.member].client_urls]
        outdated = [one for one in following if one.minor > 5 and one.data.storage != self.cluster_minor]
        return [
            *(partial(self._catch_up, one, leader) for one in behind),
            *(partial(self._publish, one) for one in unpublished),
            *(partial(self._migrate_storage, one) for one in outdated),
            *self._version_moves(following),
        ]

    def _version_moves(self, following: list[Process]) -> list[Callable[[], None]]:
        """Version monitor of the leader, which runs every few seconds."""
        if len(following) < len(self.members) and self.cluster_minor:
            return []
        lowest = min(one.minor for one in following)
        if self.downgrade and all(one.minor == self.downgrade for one in following):
            return [self._finish_downgrade]
        if self.downgrade:
            pending = self.cluster_minor > self.downgrade
            return [partial(self._set_cluster_version, self.downgrade, following)] if pending else []
        return [partial(self._set_cluster_version, lowest, following)] if self.cluster_minor < lowest else []

    def _set_cluster_version(self, minor: int, following: list[Process]) -> None:
        if minor < self.cluster_minor:
            for one in following:  # each member takes a local snapshot and drops the log before it
                one.data.old_log = one.minor == 5
        self.cluster_minor = minor

    def _finish_downgrade(self) -> None:
        self.downgrade = 0

    def _migrate_storage(self, one: Process) -> None:
        one.data.storage = self.cluster_minor

    def write(self) -> bool:
        """Write as a client; whether the write was acknowledged."""
        if self.leader_process is None or self.alarms:
            return False
        self._commit()
        return True

    def _elect(self) -> None:
        """Elect a voter whose log is at least as long as those of a quorum."""
        voters = self.connected
        electable = [
            one for one in voters if sum(o.data.log <= one.data.log for o in voters) >= quorum(len(self.voters))
        ]
        winner = self.random.choice(electable)
        self.leader, self.term = winner.data.member, self.term + 1
        if winner.data.log < self.acknowledged:
            lost = self.acknowledged - winner.data.log
            raise ViolationError(
                f"{lost} acknowledged writes are lost: they are missing on the new leader {winner.pod}"
            )

    def _catch_up(self, one: Process, leader: Process) -> None:
        one.data.log = leader.data.log
        one.data.old_log |= leader.data.old_log

    def _publish(self, one: Process) -> None:
        """Publish the name and client URLs of a member, which requires a leader."""
        member = self.members[one.data.member]
        self.members[member.id] = replace(member, name=one.pod, client_urls=(f"http://{one.pod}:2379",))

    def _commit(self) -> None:
        leader = self.leader_process
        if leader is None:
            raise EtcdError(UNAVAILABLE, "etcdserver: no leader")
        others = [one for one in self.connected if one is not leader]
        needed = quorum(len(self.voters)) - 1
        leader.data.log += 1
        for one in self.random.sample(others, self.random.randint(needed, len(others))):
            one.data.log = leader.data.log
        self.acknowledged = leader.data.log

    # -- membership changes, with the checks of --strict-reconfig-check

    def add(self, peer_urls: tuple[str, ...], *, learner: bool, now: int) -> int:
        if any(set(peer_urls) & set(member.peer_urls) for member in self.members.values()):
            raise EtcdError(FAILED_PRECONDITION, "etcdserver: Peer URLs already exists")
        if learner and any(member.is_learner for member in self.members.values()):
            raise EtcdError(FAILED_PRECONDITION, "etcdserver: too many learner members in cluster")
        if len(self._long_connected(now)) < len(self.voters):
            raise EtcdError(UNAVAILABLE, "etcdserver: unhealthy cluster")
        self._commit()
        self._next_id += 1
        self.members[self._next_id] = Member(self._next_id, "", peer_urls, (), learner)
        return self._next_id

    def promote(self, member_id: int) -> None:
        learner, leader = self.process(member_id), self.leader_process
        if learner is None or leader is None or learner.data.log < 0.9 * leader.data.log:
            raise EtcdError(FAILED_PRECONDITION, "etcdserver: can only promote a learner member which is in sync")
        self._commit()
        self.members[member_id] = replace(self.members[member_id], is_learner=False)
        self.voted.add(member_id)

    def remove(self, member_id: int, *, now: int) -> None:
        member, active = self.members[member_id], len(self._long_connected(now))
        if not member.is_learner:
            others = [other for other in self.voters if other.id != member_id]
            if not others or sum(bool(other.name) for other in others) < quorum(len(others)):
                raise EtcdError(FAILED_PRECONDITION, "etcdserver: re-configuration failed: not enough started members")
            if self.process(member_id) and active - 1 < 1 + len(others) // 2:
                raise EtcdError(UNAVAILABLE, "etcdserver: unhealthy cluster")
        self._commit()
        del self.members[member_id]

    def _long_connected(self, now: int) -> list[Process]:
        return [one for one in self.connected if now - one.since >= _HEALTH_INTERVAL]

    # -- versions

    def set_downgrade(self, minor: int) -> None:
        """Enable a downgrade, or cancel it (0)."""
        if minor and self.downgrade:
            raise EtcdError(FAILED_PRECONDITION, "etcdserver: cluster has a downgrade job in progress")
        if minor and minor != self.cluster_minor - 1:
            raise EtcdError(FAILED_PRECONDITION, "etcdserver: invalid downgrade target version")
        self._commit()
        self.downgrade = minor


def read(text: str) -> tuple[str, dict[str, str]]:
    """`initial-cluster-state` and `initial-cluster` of a configuration file."""
    values = dict(line.split(": ", 1) for line in text.splitlines() if line.startswith("initial-cluster"))
    initial = json.loads(values["initial-cluster"]).split(",")
    return json.loads(values["initial-cluster-state"]), dict(each.split("=", 1) for each in initial)
