"""Faults and user actions. Most of them keep the data of a quorum, so that the cluster can be repaired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.member_config import file_name, is_sealed
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import quorum

from .etcd import CLUSTER_ID, NO_SPACE, Data, Process, Volume
from .kubernetes import Claim, Kubernetes, Node, Pod


@dataclass
class Faults:
    random: Random
    kubernetes: Kubernetes
    say: Callable[[str], None]
    others: bool = False  # other programs use the same names
    unmanaged: int = 0  # members added by _add_unmanaged_member

    def inject(self) -> None:
        pods = [pod for pod in self.kubernetes.pods.values() if pod.deleting is None]
        faults: list[tuple[int, Callable[[], None]]] = [
            (1, self._add_unmanaged_member),
            (1, self._create_foreign_claim),
            (3, self._restore_node),
            (1, self._toggle_backup_failure),
            (1, self._toggle_alarm),
            (1, self._toggle_auth),
            (1, self._fill_volumes),
            (1, self._toggle_expansion),
        ]
        if self.others:
            faults.append((3, self._toggle_foreign_object))
        if pods:
            pod = self.random.choice(pods)
            several = self.random.sample(pods, self.random.randint(min(2, len(pods)), len(pods)))
            faults += [
                (4, lambda: self._delete_pods([pod])),
                (2, lambda: self._delete_pods(several)),
                (3, lambda: self._crash(pod)),
                (3, lambda: self._lose_data(pod, "emptied")),
                (2, lambda: self._lose_data(pod, "corrupt")),
                (3, lambda: self._lose_data(pod, "PVC deleted")),
                (2, lambda: self._fail_node(pod, "partitioned")),
                (2, lambda: self._fail_node(pod, "off")),
                (1, lambda: self._fail_node(pod, "removed")),
                (1, self._remove_member),
                (1, self._delete_object),
            ]
        self.random.choices([fault for _, fault in faults], [weight for weight, _ in faults])[0]()

    def end(self) -> None:
        """End all faults: restore or replace nodes, and delete foreign PVCs and unmanaged members as a user would."""
        self._restore_node(all_nodes=True)
        self.kubernetes.backups_fail = False
        self.kubernetes.expandable = True
        self.kubernetes.etcd.alarms.clear()
        self.kubernetes.etcd.auth = ""
        self.kubernetes.nodes |= {f"spare-{number}": Node() for number in range(2)}
        self._delete_foreign_objects()
        for name in [name for name, claim in self.kubernetes.claims.items() if self._is_foreign(claim)]:
            self.say(f"user deletes the foreign PVC {name}")
            self.kubernetes.claims[name].deleting = True
            if pod := self.kubernetes.pods.get(name.removeprefix("data-")):
                self.kubernetes.delete_pod(pod)
        etcd = self.kubernetes.etcd
        for member in [member for member in etcd.members.values() if "unmanaged" in member.peer_urls[0]]:
            self.say(f"user removes the unmanaged member {member.id:x}")
            del etcd.members[member.id]
            etcd.running.pop(member.id, None)

    def has_intact_data(self, member_id: int) -> bool:
        """Whether the data of a member is on a volume that a pod can use."""
        volumes = [pod.volume for pod in self.kubernetes.pods.values() if pod.claim is None]
        claims = [claim for claim in self.kubernetes.claims.values() if not claim.deleting]
        volumes += [claim.volume for claim in claims if self.kubernetes.is_usable(claim)]
        data = next((volume.data for volume in volumes if volume.data and volume.data.member == member_id), None)
        return data is not None and not data.corrupt

    # -- pods and data

    def _delete_pods(self, pods: list[Pod]) -> None:
        if self._may_lose_data([pod for pod in pods if pod.claim is None]):
            self.say(f"deleted pods: {', '.join(pod.name for pod in pods)}")
            for pod in pods:
                self.kubernetes.delete_pod(pod)

    def _crash(self, pod: Pod) -> None:
        """Kill a container that has run for a while, with a random number of earlier restarts."""
        if pod.process and self.kubernetes.now - pod.started_at > 60:
            pod.restarts += self.random.randint(0, 5)
            self.say(f"killed: {pod.name} after {pod.restarts} restarts")
            self.kubernetes.crash(pod)

    def _lose_data(self, pod: Pod, how: str) -> None:
        if not self._may_lose_data([pod]):
            return
        self.say(f"data loss on {pod.name}: {how}")
        if how == "PVC deleted" and pod.claim:
            pod.claim.deleting = True
            if self.random.random() < 0.8:
                self.kubernetes.delete_pod(pod)
        elif how == "corrupt" and pod.volume.data:
            pod.volume.data.corrupt = True
            self.kubernetes.crash(pod)
        else:
            pod.volume.data = None
            self.kubernetes.crash(pod)

    def _fill_volumes(self) -> None:
        """The volumes of all members are full: etcd ends, and can't start again."""
        own = [claim for claim in self.kubernetes.claims.values() if not self._is_foreign(claim)]
        if not own or self._is_forming:
            return
        self.say("all volumes are full")
        for claim in own:
            claim.full_at = claim.size
        for pod in self.kubernetes.pods.values():
            if pod.claim in own and pod.process:
                self.kubernetes.crash(pod, 1, NO_SPACE)

    def _toggle_expansion(self) -> None:
        """The StorageClass allows volumes to grow, or does not."""
        self.kubernetes.expandable = not self.kubernetes.expandable
        self.say(f"volumes {'can' if self.kubernetes.expandable else 'can not'} grow")

    def _may_lose_data(self, pods: list[Pod]) -> bool:
        """Only after the configuration is sealed, which takes one reconcile, and mostly not the data of a quorum."""
        cluster, etcd, files = self.kubernetes.cluster, self.kubernetes.etcd, self._files
        if pods and self._is_forming:
            return False
        losing = {pod.volume.data.member for pod in pods if pod.volume.data}
        for member in etcd.voters:
            text = files.get(file_name(member.name), "")
            if member.id in losing and text and not is_sealed(cluster, member.name, text):
                return False
        left = [member for member in etcd.voters if member.id not in losing and self.has_intact_data(member.id)]
        return not losing or len(left) >= quorum(len(etcd.voters)) or self.random.random() < 0.05

    @property
    def _files(self) -> dict[str, str]:
        found: dict[str, str] = self.kubernetes.objects.get(f"ConfigMap/{self.kubernetes.cluster.config_map}", {}).get(
            "data", {}
        )
        return found

    @property
    def _is_forming(self) -> bool:
        return any('"new"' in text for text in self._files.values())

    # -- nodes

    def _fail_node(self, pod: Pod, how: str) -> None:
        node = self.kubernetes.nodes.get(pod.node)
        others = [name for name, other in self.kubernetes.nodes.items() if other.state == "up" and name != pod.node]
        if node is None or not others:
            return
        affected = [other for other in self.kubernetes.pods.values() if other.node == pod.node]
        tied = how == "removed" and not self.kubernetes.floating
        if not self._may_lose_data([other for other in affected if tied or other.claim is None]):
            return
        self.say(f"{pod.node}: {how}")
        if how == "removed":
            self.kubernetes.lose_node(pod.node)
        else:
            self.kubernetes.set_node_state(pod.node, how)

    def _restore_node(self, *, all_nodes: bool = False) -> None:
        for name, node in self.kubernetes.nodes.items():
            if node.state != "up":
                self.say(f"{name}: up")
                self.kubernetes.set_node_state(name, "up")
                if not all_nodes:
                    return

    def _toggle_backup_failure(self) -> None:
        """Backups start to fail, or succeed again."""
        self.kubernetes.backups_fail = not self.kubernetes.backups_fail
        self.say(f"backups {'fail' if self.kubernetes.backups_fail else 'succeed'}")

    def _toggle_alarm(self) -> None:
        """The database is full, or the data of members differs; or a user disarms the alarm."""
        alarms, member = self.kubernetes.etcd.alarms, self.random.choice(sorted(self.kubernetes.etcd.members) or [0])
        if alarms:
            alarms.clear()
        else:
            alarms.add(self.random.choice([f"memberID:{member} alarm:NOSPACE ", "alarm:CORRUPT "]))
        self.say(f"alarms: {', '.join(alarms) or 'none'}")

    # -- user actions

    def _toggle_auth(self) -> None:
        """A user enables auth, which locks the operator out, or disables it again."""
        etcd = self.kubernetes.etcd
        if etcd.leader_process is not None:
            etcd.auth = "" if etcd.auth else self.random.choice(["changes", "everything"])
            self.say(f"auth refuses {etcd.auth or 'nothing'}")

    def _delete_object(self) -> None:
        """Delete an object; deleting a StatefulSet deletes its pods."""
        name = self.random.choice(sorted(self.kubernetes.objects))
        pods = list(self.kubernetes.pods.values()) if name.startswith("StatefulSet") else []
        if self._is_forming or not self._may_lose_data([pod for pod in pods if pod.claim is None]):
            return
        self.say(f"deleted object: {name}")
        del self.kubernetes.objects[name]
        for pod in pods:
            self.kubernetes.delete_pod(pod)

    def _remove_member(self) -> None:
        etcd = self.kubernetes.etcd
        if etcd.leader_process is None or self._is_forming:
            return
        member = self.random.choice(list(etcd.members.values()))
        try:
            etcd.remove(member.id, now=self.kubernetes.now)
        except EtcdError:
            return
        self.say(f"removed by a user: member {member.name} {member.id:x}")

    def _add_unmanaged_member(self) -> None:
        """Add a member without a member slot: a learner that is never started, or a voter that runs elsewhere."""
        etcd, learner = self.kubernetes.etcd, self.random.random() < 0.5
        if self.unmanaged or etcd.leader_process is None:
            return
        self.unmanaged += 1
        try:
            member_id = etcd.add(("http://unmanaged:2380",), learner=learner, now=self.kubernetes.now)
        except EtcdError:
            return
        self.say(f"unmanaged member added: {member_id:x}{', a learner' if learner else ''}")
        if not learner:
            process = Process(
                "unmanaged", Data(CLUSTER_ID, member_id), self.kubernetes.now, f"3.{etcd.cluster_minor}.0"
            )
            etcd.running[member_id] = process
            etcd.voted.add(member_id)

    def _create_foreign_claim(self) -> None:
        cluster = self.kubernetes.cluster
        name = f"data-{cluster.pod_name(self.random.randint(1, 7))}"
        pods = {pod.claim.name for pod in self.kubernetes.pods.values() if pod.claim}
        if cluster.storage.type == "Persistent" and name not in self.kubernetes.claims and name not in pods:
            self.say(f"foreign PVC created: {name}")
            data = Data(0xDEF, 0xDEF000 + self.random.getrandbits(12), 5)
            owner = "" if self.others else "uid-of-another"  # of another program, or of an earlier cluster
            self.kubernetes.claims[name] = Claim(name, owner, Volume(data), uid="foreign-claim")

    def _delete_foreign_objects(self) -> bool:
        found = [key for key, manifest in self.kubernetes.objects.items() if self.kubernetes.is_foreign(manifest)]
        for key in found:
            self.say(f"user deletes the foreign {key}")
            del self.kubernetes.objects[key]
        return bool(found)

    def _toggle_foreign_object(self) -> None:
        """Another program takes the name of an object, after a user has deleted that; or a user deletes it again."""
        cluster = self.kubernetes.cluster
        if self._delete_foreign_objects():
            return
        kind, name = self.random.choice(
            [
                ("Service", cluster.client_service),
                ("ConfigMap", cluster.config_map),
                ("PodDisruptionBudget", cluster.name),
                ("StatefulSet", cluster.name),
            ]
        )
        if f"{kind}/{name}" in self.kubernetes.objects and self._is_forming:
            return
        self.say(f"foreign object created: {kind}/{name}")
        self.kubernetes.objects.pop(f"{kind}/{name}", None)
        meta = {"namespace": cluster.namespace, "name": name}
        foreign = {"kind": kind, "metadata": meta, "spec": {"replicas": 1}, "data": {"theirs": "new"}}
        self.kubernetes.objects[f"{kind}/{name}"] = self.kubernetes.with_uid(foreign)

    def _is_foreign(self, claim: Claim) -> bool:
        return claim.cluster_uid != self.kubernetes.cluster.uid
