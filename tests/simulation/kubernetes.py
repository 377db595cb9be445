"""Kubernetes, as far as a StatefulSet of etcd goes: its controller, pods, claims, nodes and the kubelet.

Everything that may happen next is a move; a schedule makes some of them, in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.config import file_name
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import TEMPLATE_HASH, UID_LABEL
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import of_image, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from .etcd import CLUSTER_ID, OLD_LOG, REMOVED, Data, Etcd, Process, ViolationError, Volume

_EVICTION = 300  # seconds until the pods of a node that is not heard of are deleted
_BACK_OFF = 5  # seconds until a container that ended is started again
MISSING = ("3.6.99", "3.7.99")  # versions of which there is no image
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def moment(seconds: int) -> datetime:
    return _EPOCH + timedelta(seconds=seconds)


@dataclass
class Node:
    state: str = "up"  # up, off (its pods have stopped), cut (they run on, and nobody hears of them)
    since: int = 0


@dataclass
class Claim:
    name: str
    cluster_uid: str
    volume: Volume = field(default_factory=Volume)
    node: str = ""  # where its volume is, once a pod used it
    deleting: bool = False
    wanted: str = "1Gi"
    size: str = "1Gi"
    uid: str = ""


@dataclass
class Pod:
    name: str
    uid: str
    created: int
    template_hash: str
    version: str
    claim: Claim | None
    volume: Volume  # the claim's, or its own
    node: str = ""
    process: Process | None = None
    deleting: int | None = None  # since when
    restarts: int = 0
    started: bool = False
    code: int = 0
    log_tail: str = ""
    began: int = 0
    ended: int = -_BACK_OFF


@dataclass
class Kubernetes:
    random: Random
    etcd: Etcd
    cluster: Cluster
    now: int = 0
    objects: dict[str, Manifest] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    backups: dict[str, Manifest] = field(default_factory=dict)
    failing: bool = False  # snapshots can't be taken
    expandable: bool = True
    _uids: int = 0

    # -- what happens by itself

    def moves(self) -> list[Callable[[], None]]:
        of_pods = (move for pod in self.pods.values() for move in self._of(pod))
        return [*self._controller(), *self._claims_end(), *self._claims_grow(), *self._backups_end(), *of_pods]

    def _backups_end(self) -> list[Callable[[], None]]:
        running = [backup for backup in self.backups.values() if "status" not in backup]
        return [partial(self._backed_up, backup) for backup in running]

    def _backed_up(self, backup: Manifest) -> None:
        """It is taken if somebody serves."""
        taken = not self.failing and self.etcd.leading is not None
        done = {"clusterID": f"{CLUSTER_ID:x}", "completionTime": moment(self.now).isoformat()}
        backup["status"] = {"phase": "Succeeded", **done} if taken else {"phase": "Failed", "message": "It is full."}

    def _claims_grow(self) -> list[Callable[[], None]]:
        return [partial(self._grow, claim) for claim in self.claims.values() if claim.size != claim.wanted]

    def _grow(self, claim: Claim) -> None:
        claim.size = claim.wanted

    def _controller(self) -> list[Callable[[], None]]:
        """The StatefulSet's: pods that are missing are made, those above `replicas` go."""
        stateful_set = self.objects.get(f"StatefulSet/{self.cluster.name}")
        if stateful_set is None:
            return []
        replicas = stateful_set["spec"]["replicas"]
        wanted = [self.cluster.pod_name(number) for number in range(replicas)]
        surplus = [pod for pod in self.pods.values() if pod.name not in wanted and pod.deleting is None]
        missing = [name for name in wanted if name not in self.pods]
        # A claim that is on its way out must be gone before its pod can be made.
        able = [name for name in missing if not (claim := self.claims.get(f"data-{name}")) or not claim.deleting]
        pending = [p for p in self.pods.values() if p.claim and not p.node and p.claim.name not in self.claims]
        return [
            *(partial(self.delete_pod, pod) for pod in surplus),
            *(partial(self._make, name, stateful_set) for name in able),
            *(partial(self._claim_anew, pod, stateful_set) for pod in pending),
        ]

    def _make(self, name: str, stateful_set: Manifest) -> None:
        claim = None
        if templates := stateful_set["spec"].get("volumeClaimTemplates"):
            claim = self._claimed(name, templates[0])
        self._uids += 1
        template = stateful_set["spec"]["template"]
        template_hash = template["metadata"]["annotations"][TEMPLATE_HASH]
        version = of_image(template["spec"]["containers"][0]["image"])
        volume = claim.volume if claim else Volume()
        self.pods[name] = Pod(name, f"{name}-{self._uids}", self.now, template_hash, version, claim, volume)

    def _claimed(self, name: str, template: Manifest) -> Claim:
        uid, size = template["metadata"]["labels"][UID_LABEL], template["spec"]["resources"]["requests"]["storage"]
        self._uids += 1
        made = Claim(f"data-{name}", uid, wanted=size, size=size, uid=f"claim-{self._uids}")
        return self.claims.setdefault(f"data-{name}", made)

    def _claim_anew(self, pod: Pod, stateful_set: Manifest) -> None:
        pod.claim = self._claimed(pod.name, stateful_set["spec"]["volumeClaimTemplates"][0])
        pod.volume = pod.claim.volume

    def _claims_end(self) -> list[Callable[[], None]]:
        """A claim goes when no pod uses it; one that is not scheduled yet does not."""
        used = {pod.claim.name for pod in self.pods.values() if pod.claim and pod.node}
        gone = [name for name, claim in self.claims.items() if claim.deleting and name not in used]
        return [partial(self._drop, name) for name in gone]

    def _drop(self, name: str) -> None:
        del self.claims[name]

    def _of(self, pod: Pod) -> list[Callable[[], None]]:
        """What may become of a pod: the scheduler, the garbage collector, eviction, the kubelet."""
        node = self.nodes.get(pod.node)
        if not pod.node and pod.deleting is None:
            return [partial(self._schedule, pod)] if self._places(pod) else []
        if node is None:
            return [partial(self._end, pod)]
        if node.state != "up":
            late = pod.deleting is None and self.now - node.since > _EVICTION
            return [partial(self.delete_pod, pod)] if late else []
        if pod.deleting is not None:
            return [partial(self._end, pod)]
        if pod.process is None:
            able = pod.version not in MISSING and self.now - pod.ended >= _BACK_OFF
            return [partial(self._start, pod)] if able else []
        return [partial(self.crash, pod, 1, REMOVED)] if self._is_removed(pod.process.data) else []

    def _is_removed(self, data: Data) -> bool:
        return data.cluster == CLUSTER_ID and data.member not in self.etcd.members and self.etcd.has_quorum

    def _places(self, pod: Pod) -> list[str]:
        up = [name for name, node in self.nodes.items() if node.state == "up"]
        if pod.claim is None:
            return up
        if pod.claim.name not in self.claims or pod.claim.deleting:
            return []
        return [name for name in up if name == pod.claim.node] if pod.claim.node else up

    def _schedule(self, pod: Pod) -> None:
        pod.node = self.random.choice(self._places(pod))
        if pod.claim:
            pod.claim.node = pod.node

    def _start(self, pod: Pod) -> None:
        """A container starts, for the first time or again; its file is what the ConfigMap has at this moment."""
        files = self.objects.get(f"ConfigMap/{self.cluster.config_map}", {}).get("data", {})
        pod.restarts += pod.started
        pod.started, pod.began = True, self.now
        text = files.get(file_name(pod.name))
        if text is None:
            self.crash(pod, 1, "read /etc/etcd/etcd.yaml: is a directory")
            return
        self.read(pod, text)
        found = self.etcd.start(pod.name, text, pod.volume, self.now, pod.version)
        if found == OLD_LOG:
            raise ViolationError(f"nobody reads a log that it can't: {pod.name} has {pod.version}")
        if isinstance(found, str):
            self.crash(pod, 1, found)
        else:
            pod.process = found

    def _end(self, pod: Pod) -> None:
        self._stop(pod)
        del self.pods[pod.name]

    def _stop(self, pod: Pod) -> None:
        if pod.process is not None:
            self.etcd.stop(pod.process)
            pod.process = None

    def read(self, pod: Pod, text: str) -> None:
        """Options by a name that this version does not know are as good as not given."""
        minor, short = parse(pod.version).minor, "\ncorrupt-check-time:" in text
        if "corrupt-check-time:" in text and (minor == 5) == short and minor != 6:
            raise ViolationError(f"a file is for the version that reads it: {pod.name} has {pod.version}\n{text}")

    def with_uid(self, manifest: Manifest) -> Manifest:
        """An applied object keeps its uid, or gets one."""
        live = self.objects.get(f"{manifest['kind']}/{manifest['metadata']['name']}")
        self._uids += 1
        uid = live["metadata"]["uid"] if live else f"object-{self._uids}"
        return {**manifest, "metadata": {**manifest["metadata"], "uid": uid}}

    # -- what others do

    def crash(self, pod: Pod, code: int = 137, log_tail: str = "") -> None:
        self._stop(pod)
        pod.code, pod.log_tail, pod.ended = code, log_tail, self.now

    def delete_pod(self, pod: Pod, *, force: bool = False) -> None:
        if force:
            self._end(pod)
        elif pod.deleting is None:
            pod.deleting = self.now

    def turn(self, name: str, state: str) -> None:
        """A node is cut off, switched off, or comes back."""
        self.nodes[name] = Node(state, self.now)
        for pod in self.pods.values():
            if pod.node == name and pod.process:
                pod.process.connected, pod.process.since = state == "up", self.now
                if state == "off":
                    self._stop(pod)

    def lose_node(self, name: str) -> None:
        self.turn(name, "off")
        del self.nodes[name]
