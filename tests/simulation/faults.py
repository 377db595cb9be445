"""What goes wrong, and what people do. Mostly a quorum's data is left, so that there is something to repair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.config import file_name, is_sealed
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import quorum

from .etcd import CLUSTER_ID, Data, Process, Volume
from .kubernetes import Claim, Kubernetes, Node, Pod


@dataclass
class Faults:
    random: Random
    kubernetes: Kubernetes
    say: Callable[[str], None]
    strangers: int = 0

    def happen(self) -> None:
        pods = [pod for pod in self.kubernetes.pods.values() if pod.deleting is None]
        kinds: list[tuple[int, Callable[[], None]]] = [
            (1, self._stranger),
            (1, self._foreign_claim),
            (3, self._back),
            (1, self._store),
        ]
        if pods:
            pod = self.random.choice(pods)
            several = self.random.sample(pods, self.random.randint(min(2, len(pods)), len(pods)))
            kinds += [
                (4, lambda: self._delete([pod])),
                (2, lambda: self._delete(several)),
                (3, lambda: self._crash(pod)),
                (3, lambda: self._lose(pod, "empty")),
                (2, lambda: self._lose(pod, "corrupt")),
                (3, lambda: self._lose(pod, "claim")),
                (2, lambda: self._node(pod, "cut")),
                (2, lambda: self._node(pod, "off")),
                (1, lambda: self._node(pod, "gone")),
                (1, self._remove_member),
                (1, self._delete_object),
            ]
        self.random.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]()

    def mend(self) -> None:
        """No more faults: nodes are back or replaced, and a person has removed what does not belong."""
        self._back(everything=True)
        self.kubernetes.failing = False
        self.kubernetes.nodes |= {f"spare-{number}": Node() for number in range(2)}
        for name in [name for name, claim in self.kubernetes.claims.items() if self._is_foreign(claim)]:
            self.say(f"a person deletes the foreign claim {name}")
            self.kubernetes.claims[name].deleting = True
            if pod := self.kubernetes.pods.get(name.removeprefix("data-")):
                self.kubernetes.delete_pod(pod)
        etcd = self.kubernetes.etcd
        for member in [member for member in etcd.members.values() if "stranger" in member.peer_urls[0]]:
            self.say(f"a person removes the stranger {member.id:x}")
            del etcd.members[member.id]
            etcd.running.pop(member.id, None)

    def intact(self, member_id: int) -> bool:
        """Is a member's data on a disk that a pod can use?"""
        volumes = [pod.volume for pod in self.kubernetes.pods.values() if pod.claim is None]
        claims = [claim for claim in self.kubernetes.claims.values() if not claim.deleting]
        volumes += [claim.volume for claim in claims if not claim.node or claim.node in self.kubernetes.nodes]
        data = next((volume.data for volume in volumes if volume.data and volume.data.member == member_id), None)
        return data is not None and not data.corrupt

    # -- pods and data

    def _delete(self, pods: list[Pod]) -> None:
        if self._may_lose([pod for pod in pods if pod.claim is None]):
            self.say(f"deleted: {', '.join(pod.name for pod in pods)}")
            for pod in pods:
                self.kubernetes.delete_pod(pod)

    def _crash(self, pod: Pod) -> None:
        """One that has run for a while, and may have been killed before, now and then."""
        if pod.process and self.kubernetes.now - pod.began > 60:
            pod.restarts += self.random.randint(0, 5)
            self.say(f"killed: {pod.name}, after {pod.restarts} restarts")
            self.kubernetes.crash(pod)

    def _lose(self, pod: Pod, how: str) -> None:
        if not self._may_lose([pod]):
            return
        self.say(f"data of {pod.name}: {how}")
        if how == "claim" and pod.claim:
            pod.claim.deleting = True
            if self.random.random() < 0.8:
                self.kubernetes.delete_pod(pod)
        elif how == "corrupt" and pod.volume.data:
            pod.volume.data.corrupt = True
            self.kubernetes.crash(pod)
        else:
            pod.volume.data = None
            self.kubernetes.crash(pod)

    def _may_lose(self, pods: list[Pod]) -> bool:
        """Not before the configuration is sealed, which takes one look, and mostly not the quorum's."""
        cluster, etcd, files = self.kubernetes.cluster, self.kubernetes.etcd, self._files
        if pods and self._forming:
            return False
        losing = {pod.volume.data.member for pod in pods if pod.volume.data}
        for member in etcd.voters:
            text = files.get(file_name(member.name), "")
            if member.id in losing and text and not is_sealed(cluster, member.name, text):
                return False
        left = [member for member in etcd.voters if member.id not in losing and self.intact(member.id)]
        return not losing or len(left) >= quorum(len(etcd.voters)) or self.random.random() < 0.05

    @property
    def _files(self) -> dict[str, str]:
        found: dict[str, str] = self.kubernetes.objects.get(f"ConfigMap/{self.kubernetes.cluster.config_map}", {}).get(
            "data", {}
        )
        return found

    @property
    def _forming(self) -> bool:
        return any('"new"' in text for text in self._files.values())

    # -- nodes

    def _node(self, pod: Pod, how: str) -> None:
        node = self.kubernetes.nodes.get(pod.node)
        others = [name for name, other in self.kubernetes.nodes.items() if other.state == "up" and name != pod.node]
        if node is None or not others:
            return
        there = [other for other in self.kubernetes.pods.values() if other.node == pod.node]
        if not self._may_lose([other for other in there if how == "gone" or other.claim is None]):
            return
        self.say(f"{pod.node}: {how}")
        if how == "gone":
            self.kubernetes.lose_node(pod.node)
        else:
            self.kubernetes.turn(pod.node, how)

    def _back(self, *, everything: bool = False) -> None:
        for name, node in self.kubernetes.nodes.items():
            if node.state != "up":
                self.say(f"{name}: back")
                self.kubernetes.turn(name, "up")
                if not everything:
                    return

    def _store(self) -> None:
        """Where snapshots go is full, or has room again."""
        self.kubernetes.failing = not self.kubernetes.failing
        self.say(f"snapshots {'fail' if self.kubernetes.failing else 'can be taken'}")

    # -- people

    def _delete_object(self) -> None:
        """A StatefulSet takes its pods with it."""
        name = self.random.choice(sorted(self.kubernetes.objects))
        pods = list(self.kubernetes.pods.values()) if name.startswith("StatefulSet") else []
        if self._forming or not self._may_lose([pod for pod in pods if pod.claim is None]):
            return
        self.say(f"deleted: {name}")
        del self.kubernetes.objects[name]
        for pod in pods:
            self.kubernetes.delete_pod(pod)

    def _remove_member(self) -> None:
        etcd = self.kubernetes.etcd
        if etcd.leading is None or self._forming:
            return
        member = self.random.choice(list(etcd.members.values()))
        try:
            etcd.remove(member.id, now=self.kubernetes.now)
        except EtcdError:
            return
        self.say(f"removed behind our back: {member.name} {member.id:x}")

    def _stranger(self) -> None:
        """A member of somebody else's: a learner that is never started, or a voter that runs elsewhere."""
        etcd, learner = self.kubernetes.etcd, self.random.random() < 0.5
        if self.strangers or etcd.leading is None:
            return
        self.strangers += 1
        try:
            member_id = etcd.add(("http://stranger:2380",), learner=learner, now=self.kubernetes.now)
        except EtcdError:
            return
        self.say(f"a stranger was added: {member_id:x}{', a learner' if learner else ''}")
        if not learner:
            process = Process("stranger", Data(CLUSTER_ID, member_id), self.kubernetes.now, f"3.{etcd.agreed}.0")
            etcd.running[member_id] = process
            etcd.voted.add(member_id)

    def _foreign_claim(self) -> None:
        cluster = self.kubernetes.cluster
        name = f"data-{cluster.pod_name(self.random.randint(1, 7))}"
        pods = {pod.claim.name for pod in self.kubernetes.pods.values() if pod.claim}
        if cluster.storage.type == "Persistent" and name not in self.kubernetes.claims and name not in pods:
            self.say(f"a foreign claim: {name}")
            data = Data(0xDEF, 0xDEF000 + self.random.getrandbits(12), 5)
            self.kubernetes.claims[name] = Claim(name, "uid-of-another", Volume(data), uid="foreign-claim")

    def _is_foreign(self, claim: Claim) -> bool:
        return claim.cluster_uid != self.kubernetes.cluster.uid
