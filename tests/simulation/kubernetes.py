"""Model of Kubernetes for one StatefulSet: its controller, pods, PVCs, nodes and the kubelet.

Each possible next step is a move; a schedule executes some of them in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import TEMPLATE_HASH, UID_LABEL
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.member_config import file_name
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import of_image, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from .etcd import CLUSTER_ID, NO_SPACE, OLD_LOG, REMOVED, Data, Etcd, Process, ViolationError, Volume

_EVICTION = 300  # seconds until the pods of an unreachable node are deleted
_BACK_OFF = 5  # seconds until a container that exited is restarted
MISSING_IMAGES = ("3.6.99", "3.7.99")  # versions without an image
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def moment(seconds: int) -> datetime:
    return _EPOCH + timedelta(seconds=seconds)


@dataclass
class Node:
    state: str = "up"  # up, off (its pods are stopped), partitioned (they run, but are unreachable)
    since: int = 0


@dataclass
class Claim:
    name: str
    cluster_uid: str
    volume: Volume = field(default_factory=Volume)
    node: str = ""  # of its volume, once a pod has used it
    deleting: bool = False
    requested: str = "1Gi"
    size: str = "1Gi"
    uid: str = ""
    full_at: str = ""  # the size at which its volume was full

    @property
    def is_full(self) -> bool:
        return self.full_at == self.size


@dataclass
class Pod:
    name: str
    uid: str
    created: int
    template_hash: str
    version: str
    claim: Claim | None
    volume: Volume  # of the PVC, or an emptyDir
    node: str = ""
    process: Process | None = None
    deleting: int | None = None  # since when
    restarts: int = 0
    started: bool = False
    exit_code: int = 0
    log_tail: str = ""
    started_at: int = 0
    finished_at: int = -_BACK_OFF


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
    status: dict[str, Any] = field(default_factory=dict)  # of the EtcdCluster
    statuses: int = 0  # how often it was written
    backups_fail: bool = False
    expandable: bool = True
    floating: bool = False  # volumes can be used on every node
    _uids: int = 0

    # -- spontaneous moves

    def moves(self) -> list[Callable[[], None]]:
        pod_moves = (move for pod in self.pods.values() for move in self._pod_moves(pod))
        return [
            *self._controller(),
            *self._claim_deletions(),
            *self._claim_expansions(),
            *self._backup_moves(),
            *pod_moves,
        ]

    def _backup_moves(self) -> list[Callable[[], None]]:
        running = [backup for backup in self.backups.values() if "status" not in backup]
        return [partial(self._complete_backup, backup) for backup in running]

    def _complete_backup(self, backup: Manifest) -> None:
        """A backup succeeds if there is a leader and backups do not fail."""
        taken = not self.backups_fail and self.etcd.leader_process is not None
        done = {"clusterID": f"{CLUSTER_ID:x}", "completionTime": moment(self.now).isoformat()}
        backup["status"] = {"phase": "Succeeded", **done} if taken else {"phase": "Failed", "message": "No space left."}

    def _claim_expansions(self) -> list[Callable[[], None]]:
        return [partial(self._expand_claim, claim) for claim in self.claims.values() if claim.size != claim.requested]

    def _expand_claim(self, claim: Claim) -> None:
        claim.size = claim.requested

    def _controller(self) -> list[Callable[[], None]]:
        """The StatefulSet controller: create missing pods, delete those above `replicas`."""
        stateful_set = self.objects.get(f"StatefulSet/{self.cluster.name}")
        if stateful_set is None or self.is_foreign(stateful_set):
            return []
        replicas = stateful_set["spec"]["replicas"]
        wanted = [self.cluster.pod_name(number) for number in range(replicas)]
        surplus = [pod for pod in self.pods.values() if pod.name not in wanted and pod.deleting is None]
        missing = [name for name in wanted if name not in self.pods]
        # A PVC that is being deleted must be removed before its pod can be created.
        creatable = [name for name in missing if not (claim := self.claims.get(f"data-{name}")) or not claim.deleting]
        pending = [p for p in self.pods.values() if p.claim and not p.node and p.claim.name not in self.claims]
        return [
            *(partial(self.delete_pod, pod) for pod in surplus),
            *(partial(self._create_pod, name, stateful_set) for name in creatable),
            *(partial(self._recreate_claim, pod, stateful_set) for pod in pending),
        ]

    def _create_pod(self, name: str, stateful_set: Manifest) -> None:
        claim = None
        if templates := stateful_set["spec"].get("volumeClaimTemplates"):
            claim = self._ensure_claim(name, templates[0])
        self._uids += 1
        template = stateful_set["spec"]["template"]
        template_hash = template["metadata"]["annotations"][TEMPLATE_HASH]
        version = of_image(template["spec"]["containers"][0]["image"])
        volume = claim.volume if claim else Volume()
        self.pods[name] = Pod(name, f"{name}-{self._uids}", self.now, template_hash, version, claim, volume)

    def _ensure_claim(self, name: str, template: Manifest) -> Claim:
        uid, size = template["metadata"]["labels"][UID_LABEL], template["spec"]["resources"]["requests"]["storage"]
        self._uids += 1
        created = Claim(f"data-{name}", uid, requested=size, size=size, uid=f"claim-{self._uids}")
        return self.claims.setdefault(f"data-{name}", created)

    def _recreate_claim(self, pod: Pod, stateful_set: Manifest) -> None:
        pod.claim = self._ensure_claim(pod.name, stateful_set["spec"]["volumeClaimTemplates"][0])
        pod.volume = pod.claim.volume

    def _claim_deletions(self) -> list[Callable[[], None]]:
        """A PVC is removed when no pod uses it; a pod that is not scheduled does not use it."""
        used = {pod.claim.name for pod in self.pods.values() if pod.claim and pod.node}
        removable = [name for name, claim in self.claims.items() if claim.deleting and name not in used]
        return [partial(self._remove_claim, name) for name in removable]

    def _remove_claim(self, name: str) -> None:
        del self.claims[name]

    def _pod_moves(self, pod: Pod) -> list[Callable[[], None]]:
        """Moves for a pod: scheduling, garbage collection, eviction, and those of the kubelet."""
        node = self.nodes.get(pod.node)
        if not pod.node and pod.deleting is None:
            return [partial(self._schedule, pod)] if self._eligible_nodes(pod) else []
        if node is None:
            return [partial(self._remove_pod, pod)]
        if node.state != "up":
            evict = pod.deleting is None and self.now - node.since > _EVICTION
            return [partial(self.delete_pod, pod)] if evict else []
        if pod.deleting is not None:
            return [partial(self._remove_pod, pod)]
        if pod.process is None:
            startable = pod.version not in MISSING_IMAGES and self.now - pod.finished_at >= _BACK_OFF
            return [partial(self._start, pod)] if startable else []
        return [partial(self.crash, pod, 1, REMOVED)] if self._is_removed(pod.process.data) else []

    def _is_removed(self, data: Data) -> bool:
        return data.cluster == CLUSTER_ID and data.member not in self.etcd.members and self.etcd.has_quorum

    def _eligible_nodes(self, pod: Pod) -> list[str]:
        up = [name for name, node in self.nodes.items() if node.state == "up"]
        if pod.claim is None:
            return up
        if pod.claim.name not in self.claims or pod.claim.deleting:
            return []
        return up if self.floating or not pod.claim.node else [name for name in up if name == pod.claim.node]

    def is_usable(self, claim: Claim) -> bool:
        """Whether there is a node on which the volume of a PVC can be used."""
        return self.floating or not claim.node or claim.node in self.nodes

    def _schedule(self, pod: Pod) -> None:
        pod.node = self.random.choice(self._eligible_nodes(pod))
        if pod.claim:
            pod.claim.node = pod.node

    def _start(self, pod: Pod) -> None:
        """Start or restart a container with its file from the current ConfigMap."""
        files = self.objects.get(f"ConfigMap/{self.cluster.config_map}", {}).get("data", {})
        pod.restarts += pod.started
        pod.started, pod.started_at = True, self.now
        text = files.get(file_name(pod.name))
        if text is None:
            self.crash(pod, 1, "read /etc/etcd/etcd.yaml: is a directory")
            return
        if pod.claim and pod.claim.is_full:
            self.crash(pod, 1, NO_SPACE)
            return
        found = self.etcd.start(pod.name, text, pod.volume, self.now, pod.version)
        if found == OLD_LOG:
            raise ViolationError(f"no member reads a log of an incompatible version: {pod.name} has {pod.version}")
        if isinstance(found, str):
            self.crash(pod, 1, found)
        else:
            self.check_config(pod, text)
            pod.process = found

    def _remove_pod(self, pod: Pod) -> None:
        self._stop(pod)
        del self.pods[pod.name]

    def _stop(self, pod: Pod) -> None:
        if pod.process is not None:
            self.etcd.stop(pod.process)
            pod.process = None

    def check_config(self, pod: Pod, text: str) -> None:
        """etcd ignores an option whose name its version does not know, so the file must match the version."""
        minor, short = parse(pod.version).minor, "\ncorrupt-check-time:" in text
        if "corrupt-check-time:" in text and (minor == 5) == short and minor != 6:
            raise ViolationError(
                f"a configuration file matches the version that reads it: {pod.name} has {pod.version}\n{text}"
            )

    def is_foreign(self, manifest: Manifest) -> bool:
        """Whether an object of this kind and name exists and belongs to something else."""
        live = self.objects.get(f"{manifest['kind']}/{manifest['metadata']['name']}")
        return live is not None and not live["metadata"].get("ownerReferences")

    def with_uid(self, manifest: Manifest) -> Manifest:
        """The applied object with its current UID, or a new one, and a new resourceVersion."""
        live = self.objects.get(f"{manifest['kind']}/{manifest['metadata']['name']}")
        self._uids += 1
        uid = live["metadata"]["uid"] if live else f"object-{self._uids}"
        return {**manifest, "metadata": {**manifest["metadata"], "uid": uid, "resourceVersion": str(self._uids)}}

    # -- moves of other actors

    def crash(self, pod: Pod, code: int = 137, log_tail: str = "") -> None:
        self._stop(pod)
        pod.exit_code, pod.log_tail, pod.finished_at = code, log_tail, self.now

    def delete_pod(self, pod: Pod, *, force: bool = False) -> None:
        if force:
            self._remove_pod(pod)
        elif pod.deleting is None:
            pod.deleting = self.now

    def set_node_state(self, name: str, state: str) -> None:
        """Partition a node, power it off, or restore it."""
        self.nodes[name] = Node(state, self.now)
        for pod in self.pods.values():
            if pod.node == name and pod.process:
                pod.process.connected, pod.process.since = state == "up", self.now
                if state == "off":
                    self._stop(pod)

    def lose_node(self, name: str) -> None:
        self.set_node_state(name, "off")
        del self.nodes[name]
