"""A schedule: the seed determines all moves, faults and edits, their order, and where the operator crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, Storage, TlsSpec, UpgradeSpec
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import manifests, member_config, observe
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.member_config import file_name, is_sealed
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.quota import with_default
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import quorum
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.upgrade_path import refusal
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import parse as parse_version
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.quantity import parse

from .api import REJECTED, claim_manifest
from .etcd import Etcd, ViolationError
from .faults import Faults
from .invariants import Invariants
from .kubernetes import MISSING_IMAGES, Claim, Kubernetes, Node
from .operator import CrashError, Operator

_ACTIONS = {"operator": 30, "moves": 36, "write": 10, "time": 10, "fault": 5, "edit": 2}
# Includes versions without an image, and versions that have no upgrade path.
_VERSIONS = {"3.5.20": 1, "3.5.35": 3, "3.6.16": 5, "3.6.17": 3, "3.6.99": 1, "3.7.3": 5, "3.7.99": 1}
_IN_PROGRESS = (Phase.UPGRADING, Phase.RESTARTING, Phase.EXPANDING, Phase.SCALING, Phase.REPAIRING)
_NEEDS_USER = (
    Reason.VERSION_REFUSED,
    Reason.UPGRADE_BLOCKED,
    Reason.ROLLOUT_STOPPED,
    Reason.CANNOT_RESTART,
)
_TWO_OPERATORS = 0.3  # share of schedules
_ROUNDS = 150  # within which a cluster must converge after the last fault


@dataclass
class World:
    random: Random
    cluster: Cluster
    kubernetes: Kubernetes
    invariants: Invariants
    faults: Faults
    operator: Operator = field(init=False)
    second: Operator | None = None  # in some schedules another operator serves the same namespace
    faults_ended: bool = False
    specs: list[Cluster] = field(default_factory=list)  # all specs so far

    @classmethod
    def make(cls, seed: int) -> World:
        random = Random(seed)  # noqa: S311
        storage = Storage("Memory" if random.random() < 0.15 else "Persistent")
        size = random.choices([1, 2, 3, 4, 5, 7], [2, 1, 8, 1, 3, 1])[0]
        version = random.choices(["3.5.35", "3.6.16", "3.7.3"], [3, 5, 2])[0]
        options = {"extra": {"corrupt-check-time": "1h"}} if random.random() < 0.3 else {}
        cluster = Cluster(
            "e", "default", "uid-1", 1, size, version, storage=storage, tls=TlsSpec("Disabled"), options=options
        )
        cluster = replace(cluster, upgrade=UpgradeSpec(allow_downgrade=random.random() < 0.4))
        nodes = {f"node-{number}": Node() for number in range(4)}
        kubernetes = Kubernetes(random, Etcd(random), cluster, nodes=nodes, floating=random.random() < 0.3)
        invariants = Invariants(kubernetes)
        others = seed % 8 == 0
        world = cls(random, cluster, kubernetes, invariants, Faults(random, kubernetes, invariants.say, others))
        world.specs.append(cluster)
        world.operator = Operator(kubernetes, invariants, world._before_effect)
        if random.random() < _TWO_OPERATORS:
            world.second = Operator(kubernetes, invariants, world._before_other_effect)
        return world

    def run(self, steps: int) -> None:
        """Run steps with faults, then converge without faults."""
        if self.random.random() < 0.8:  # most schedules start with a bootstrapped cluster
            for _ in range(3):
                self.operator.run(self.cluster)
                self._settle()
        for _ in range(steps):
            self._act()
        self._converge()

    # -- steps

    def _act(self) -> None:
        match self.random.choices(list(_ACTIONS), list(_ACTIONS.values()))[0]:
            case "operator":
                unreachable = [pod for pod in self.kubernetes.pods if self.random.random() < 0.02]
                self.operator.run(self.cluster, frozenset(unreachable))
            case "moves":
                self._move(self.random.randint(1, 6))
            case "write":
                self.kubernetes.etcd.write()
            case "time":
                self.kubernetes.now += self.random.choice((1, 1, 2, 5, 6, 30, 130, 310, 700))
            case "fault":
                self.faults.inject()
            case "edit":
                self._edit()

    def _move(self, number: int) -> None:
        for _ in range(number):
            if moves := [*self.kubernetes.moves(), *self.kubernetes.etcd.moves()]:
                self.random.choice(moves)()

    def _before_effect(self, what: str) -> None:
        """Execute other moves while the operator acts; it may also be killed."""
        if self.random.random() < 0.3:
            self._move(self.random.randint(1, 4))
        if not self.faults_ended:
            if self.random.random() < 0.02:
                self.faults.inject()
            if self.random.random() < 0.07:
                self.invariants.say(f"the operator crashes before: {what}")
                raise CrashError
            if self.second and self.random.random() < 0.1:
                self._pause(self.second)
        self.invariants.say(what)

    def _before_other_effect(self, what: str) -> None:
        """The second operator acts while the first one pauses, and may be killed too."""
        if self.random.random() < 0.3:
            self._move(self.random.randint(1, 4))
        if self.random.random() < 0.07:
            raise CrashError
        self.invariants.say(f"second operator: {what}")

    def _pause(self, other: Operator) -> None:
        """The operator stops in the middle of its work for as long as the other one needs for some reconciles."""
        self.invariants.say("the operator pauses")
        for _ in range(self.random.randint(1, 12)):
            other.run(self.cluster)
            self._move(self.random.randint(0, 8))
            self.kubernetes.now += self.random.choice((0, 1, 2, 6))
        self.operator.interrupted = True
        self.invariants.say("the operator goes on")

    def _edit(self) -> None:
        """Change the spec at any time, including changes that admission rejects, because it may not be installed."""
        random, cluster = self.random, self.cluster
        changes: dict[str, Any] = {"paused": False}
        edits = {"size": 6, "version": 6, "options": 3, "upgrade": 1, "storage": 2, "pod": 1, "paused": 1}
        match random.choices(list(edits), list(edits.values()))[0]:
            case "size":
                changes["size"] = random.choices([0, 1, 2, 3, 4, 5, 6, 7], [1, 3, 1, 5, 2, 4, 1, 1])[0]
            case "version":
                version = random.choices(list(_VERSIONS), list(_VERSIONS.values()))[0]
                # Before the first quorum the running version is unknown, so only the patch version may change.
                patch = parse_version(version).minor == parse_version(cluster.version).minor
                changes["version"] = version if patch or self.operator.status.get("clusterID") else cluster.version
            case "options":
                changes["options"] = random.choice([{}, {"logLevel": "debug"}, {"extra": {"corrupt-check-time": "1h"}}])
            case "upgrade":
                changes["upgrade"] = UpgradeSpec(random.random() < 0.5, random.random() < 0.8)
            case "storage":
                changes["storage"] = replace(cluster.storage, size=random.choice(["1Gi", "2Gi", "3Gi"]))
            case "pod":
                changes["pod"] = random.choice([{}, {"labels": {REJECTED: "yes"}}])
            case "paused":
                changes["paused"] = True
        self._change(**changes)

    def _change(self, **changes: Any) -> None:
        self.cluster = replace(self.cluster, generation=self.cluster.generation + 1, **changes)
        self.kubernetes.cluster = self.cluster
        self.specs.append(self.cluster)
        text = ", ".join(f"{name} {value}" for name, value in changes.items())
        self.invariants.say(f"edit: {text}")

    # -- convergence

    def _converge(self) -> None:
        """End all faults. With quorum the cluster converges; without, it reports quorum loss and deletes nothing."""
        self.faults_ended = True
        self.invariants.say("no more faults")
        if self.cluster.paused or self.cluster.size == 0:
            self._change(size=self.cluster.size or 3, paused=False)
        self.faults.end()
        if any(claim.is_full for claim in self.kubernetes.claims.values()):
            self._change(storage=replace(self.cluster.storage, size="4Gi"))
        self._until_idle()
        # Without faults, upgrades to later minor versions succeed too.
        while self.random.random() < 0.4 and self._next_minor():
            self._until_idle()
        self._check_final_state()

    def _next_minor(self) -> bool:
        last, after = self.operator.last, {5: "3.6.17", 6: "3.7.3"}.get(parse_version(self.cluster.version).minor)
        if last is None or last.phase is not Phase.RUNNING or after is None or self.cluster.version == "3.5.20":
            return False
        self._change(version=after)
        return True

    def _until_idle(self) -> None:
        quiet = 0
        for _ in range(_ROUNDS):
            self.kubernetes.etcd.write()
            self._settle()
            quiet = quiet + 1 if self.operator.run(self.cluster) else 0
            last = self.operator.last
            if quiet >= 2 and self._correct_spec():
                quiet = 0
            in_progress = last and last.phase in _IN_PROGRESS
            if quiet >= 2 and last and not in_progress and last.reason not in (Reason.JOIN_FAILED, Reason.STARTING):
                break
            self.kubernetes.now += 60 if quiet else 6

    def _correct_spec(self) -> bool:
        """Change an impossible spec, as a user who reads the message would; whether it was changed."""
        last = self.operator.last
        assert last
        if "Delete the pod too" in last.message:
            return self._delete_stopped_pods(with_claims=True)
        if "Correct spec.pod." in last.message:
            return self._correct_pod(last.reason)
        if last.reason not in _NEEDS_USER and "ImagePull" not in last.message:
            return False
        if last.reason is Reason.CANNOT_RESTART or "in memory" in last.message:
            self._change(size=3)
            return True
        running = [process.version for process in self.kubernetes.etcd.connected]
        if last.reason is Reason.UPGRADE_BLOCKED:
            possible = len(set(running)) == 1 and not refusal(running, self.cluster.version)
            self.invariants.check(not possible, "a target that can be reached is not blocked", last)
        if last.reason is Reason.ROLLOUT_STOPPED and (
            self._roll_back_spec() or self._delete_stopped_pods() or self._delete_damaged_claims()
        ):
            return True
        if not running and self.operator.status.get("clusterID"):  # back to the previous version
            known = [spec.version for spec in self.specs if spec.version not in MISSING_IMAGES]
            self._change(version=self.operator.status.get("upgrade", {"from": known[-1]})["from"])
        else:
            self._change(version=max(running, key=parse_version, default="3.6.16"))
        return True

    def _correct_pod(self, reason: object) -> bool:
        etcd = self.kubernetes.etcd
        # Without a StatefulSet, it is not known how the pods were.
        known = etcd.has_quorum and f"StatefulSet/{self.cluster.name}" in self.kubernetes.objects
        down = [member.name for member in etcd.voters if not etcd.process(member.id)] if known else []
        self.invariants.check(
            not down or reason is not Reason.REJECTED, "lost members are replaced although spec.pod is rejected", down
        )
        self._change(pod={})
        return True

    def _delete_stopped_pods(self, *, with_claims: bool = False) -> bool:
        """Delete stopped pods whose storage is in memory, or is being deleted, so that their members are replaced."""
        stopped = [pod for pod in self.kubernetes.pods.values() if pod.process is None]
        pods = [pod for pod in stopped if (pod.claim.deleting if pod.claim else not with_claims)]
        for pod in pods:
            self.invariants.say(f"user deletes pod {pod.name}")
            self.kubernetes.delete_pod(pod)
        return bool(pods)

    def _delete_damaged_claims(self) -> bool:
        """Delete the PVCs of damaged members, and their pods."""
        data = {pod.name: pod.volume.data for pod in self.kubernetes.pods.values() if pod.claim}
        damaged = [name for name, found in data.items() if found and found.corrupt]
        for name in damaged:
            self.invariants.say(f"user deletes the PVC of {name}")
            self.kubernetes.claims[f"data-{name}"].deleting = True
            self.kubernetes.delete_pod(self.kubernetes.pods[name])
        return bool(damaged)

    def _roll_back_spec(self) -> bool:
        """Restore the spec from which most of the running members were created."""
        pods = [self.kubernetes.pods.get(process.pod) for process in self.kubernetes.etcd.connected]
        hashes = [pod.template_hash for pod in pods if pod]
        before = max(sorted(hashes), key=hashes.count, default="")
        for spec in self.specs:
            earlier = replace(self.cluster, version=spec.version, options=spec.options)
            if self._settings(earlier) == before and before != self._settings(self.cluster):
                self._change(version=spec.version, options=spec.options)
                return True
        return False

    def _settle(self) -> None:
        """Execute moves until none is possible."""
        while moves := [*self.kubernetes.moves(), *self.kubernetes.etcd.moves()]:
            self.random.choice(moves)()

    def _check_final_state(self) -> None:
        etcd, kubernetes, check, cluster = self.kubernetes.etcd, self.kubernetes, self.invariants.check, self.cluster
        plan = self.operator.last
        assert plan
        if etcd.voted and not etcd.has_quorum:
            check(plan.phase in (Phase.QUORUM_LOST, Phase.STARTING), "quorum loss is reported", plan)
            check(not self._could_have_quorum(), "a quorum of intact members recovers", plan)
            return
        names = [cluster.pod_name(number) for number in range(cluster.size)]
        files = kubernetes.objects.get(f"ConfigMap/{cluster.config_map}", {}).get("data", {})
        claims = {name for name, claim in kubernetes.claims.items() if claim.cluster_uid == cluster.uid}
        expected = {
            "voters": sorted(member.name for member in etcd.voters) == names and len(etcd.members) == len(names),
            "files": sorted(files) == sorted(map(file_name, names))
            and all(is_sealed(cluster, name, files[file_name(name)]) for name in names),
            "replicas": kubernetes.objects[f"StatefulSet/{cluster.name}"]["spec"]["replicas"] == cluster.size,
            "claims": claims == ({f"data-{name}" for name in names} if cluster.storage.type == "Persistent" else set()),
            "phase": plan.phase is Phase.RUNNING and plan.action is None,
            "status": self.operator.status["readyMembers"] == self.operator.status["size"] == cluster.size,
            "version": {process.version for process in etcd.connected} == {cluster.version},
            "settings": {pod.template_hash for pod in kubernetes.pods.values()} == {self._settings(cluster)},
            "space": not [claim for claim in kubernetes.claims.values() if claim.is_full],
            "upgrade": self.operator.status.get("upgrade", {"completed": "never"}).get("completed") is not None,
            "capacity": not [claim for claim in kubernetes.claims.values() if self._is_too_small(claim)],
        }
        failed = [what for what, holds in expected.items() if not holds]
        check(not failed, f"the cluster converges, except for {', '.join(failed)}", plan)

    def _is_too_small(self, claim: Claim) -> bool:
        small = parse(claim.size) < parse(self.cluster.storage.size)
        return small and not claim.deleting and self.cluster.storage.type == "Persistent"

    def _settings(self, cluster: Cluster) -> str:
        files = self.kubernetes.objects.get(f"ConfigMap/{cluster.config_map}", {}).get("data", {})
        claims = [observe.claim_of(claim_manifest(claim), ()) for claim in self.kubernetes.claims.values()]
        cluster = with_default(cluster, files, claims)
        return str(manifests.pod_template(cluster, cluster.version)["metadata"]["annotations"][manifests.TEMPLATE_HASH])

    def _could_have_quorum(self) -> bool:
        intact = [member for member in self.kubernetes.etcd.voters if self.faults.has_intact_data(member.id)]
        return len(intact) >= quorum(len(self.kubernetes.etcd.voters))


def play(seed: int, steps: int = 40) -> list[str]:
    """Run one schedule; its trace. ViolationError contains seed and trace."""
    return play_world(seed, steps).invariants.trace


def play_world(seed: int, steps: int = 40) -> World:
    """Run one schedule; the final state. ViolationError contains seed and trace."""
    world = World.make(seed)
    try:
        with _cached():
            world.run(steps)
    except ViolationError as error:
        trace = "\n".join(world.invariants.trace)
        message = f"{error}\nseed {seed}; python -m tests.simulation --seed {seed} replays it:\n{trace}"
        raise ViolationError(message) from None
    return world


def play_all(seeds: Iterable[int]) -> None:
    for seed in seeds:
        play(seed)


@contextmanager
def _cached() -> Iterator[None]:
    """Cache rendered values: simulated clusters differ little, and rendering would take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((member_config, "settings"), (manifests, "settings"), (manifests, "pod_template")):
            patch.setattr(module, name, partial(_cached_call, getattr(module, name)))
        patch.setattr(member_config, "_file", partial(_cached_call, member_config._file))
        yield


def _cached_call(make: Callable[..., Any], cluster: Cluster, *arguments: Any) -> Any:
    inputs = (cluster.storage, cluster.version, cluster.options, cluster.pod)
    key = (make.__name__, str(inputs), str(arguments))
    if key not in _CACHE:
        _CACHE[key] = make(cluster, *arguments)
    return _CACHE[key]


_CACHE: dict[tuple[str, str, str], Any] = {}
