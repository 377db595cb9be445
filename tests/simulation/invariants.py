"""What must hold after every effect (DESIGN.md 6), judged by what is true in the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.config import file_name, is_sealed
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import template_hash
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observed
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Plan, Step
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import Change, quorum
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import of_image, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from .etcd import Etcd, ViolationError
from .kubernetes import Claim, Kubernetes, Pod


@dataclass
class Invariants:
    kubernetes: Kubernetes
    trace: list[str] = field(default_factory=list)

    @property
    def etcd(self) -> Etcd:
        return self.kubernetes.etcd

    def say(self, text: str) -> None:
        self.trace.append(f"{self.kubernetes.now:5} {text}")

    def check(self, holds: bool, what: str, found: object = "") -> None:
        if not holds:
            raise ViolationError(f"{what}: {found}")

    # -- a plan, made from what is true at this moment (but for answers that were missed)

    def planned(self, cluster: Cluster, seen: Observed, plan: Plan) -> None:
        acts = plan.step is not Step.IDLE or plan.remove or plan.add or plan.promote or plan.apply
        ran = [name for name in plan.delete_pods if (pod := self.kubernetes.pods.get(name)) and pod.started]
        deletes = plan.delete_claims or ran
        if cluster.paused:
            self.check(not acts and not deletes, "paused means hands off", plan)
        changes = plan.remove or plan.add or plan.promote
        if seen.cluster_id and not self.etcd.has_quorum:
            self.check(not changes and not deletes, "nothing is deleted or changed without quorum", plan)
        if plan.restart:
            self._turn(cluster, plan)
        if changes:
            self._one_change(cluster, plan)
        for name in plan.delete_claims:
            self.check(self._ours(name), "a foreign claim is never deleted", name)
        if plan.add and (claim := self.kubernetes.claims.get(f"data-{plan.add}")):
            self.check(claim.cluster_uid == cluster.uid, "a foreign claim is never adopted", claim)

    def _turn(self, cluster: Cluster, plan: Plan) -> None:
        """Whose turn is it in a roll? Judged when it is planned."""
        leads = next((m for m in self.etcd.voters if m.id == self.etcd.leader), None)
        made = template_hash(self.kubernetes.objects[f"StatefulSet/{cluster.name}"])
        process = self.etcd.process(leads.id) if leads else None
        if leads is None or leads.name != plan.restart or process is None or not self.etcd.serves(process):
            return
        pods = [pod for name in self.etcd.voters if (pod := self.kubernetes.pods.get(name.name))]
        stale = [pod.name for pod in pods if pod.template_hash != made and pod.name != leads.name]
        self.check(not stale, "the leader is the last", (leads.name, stale))

    def _one_change(self, cluster: Cluster, plan: Plan) -> None:
        going, etcd = int(plan.remove, 16) if plan.remove else 0, self.etcd
        unwell = [m for m in etcd.voters if not (process := etcd.process(m.id)) or not etcd.serves(process)]
        learners = [m for m in etcd.members.values() if m.is_learner and m.id != going]
        self.check(bool(plan.promote) + bool(plan.add) <= 1, "one change at a time", plan)
        if plan.add or plan.promote:
            self.check(not [m for m in unwell if m.id != going], "nobody joins while a voter is down", unwell)
        if plan.add:
            self.check(not learners, "one learner at a time", learners)
        if going and going in {member.id for member in etcd.voters}:
            down = {member.id for member in unwell}
            self.check(not down or going in down, "no healthy voter is removed while another is down", unwell)
            ordinal = self._ordinal(cluster, etcd.members[going].peer_urls)
            wanted = ordinal is not None and ordinal < cluster.size
            # In memory nobody can restart, so a new member takes the place.
            rolled = cluster.storage.type == "Memory" and plan.phase in (Phase.UPGRADING, Phase.RESTARTING)
            kept = not wanted or rolled
            self.check(kept or self._is_lost(going), "only what is lost is replaced", etcd.members[going])

    def _is_lost(self, member_id: int) -> bool:
        """Is there no pod, on a node that is well, that has its data or may get it back?"""
        for pod in self.kubernetes.pods.values():
            data, node = pod.volume.data, self.kubernetes.nodes.get(pod.node or (pod.claim.node if pod.claim else ""))
            going = pod.deleting is not None and pod.claim is not None and pod.claim.deleting
            if data and data.member == member_id and not data.corrupt and node and node.state == "up" and not going:
                return False
        for claim in self.kubernetes.claims.values():  # its pod may be on its way
            data, node = claim.volume.data, self.kubernetes.nodes.get(claim.node)
            if data and data.member == member_id and not data.corrupt and not claim.deleting and node:
                return node.state != "up"
        return True

    def ran(self, seen: Observed) -> None:
        """After a run nobody is open any more who had started before it."""
        cluster = self.kubernetes.cluster
        files = self.kubernetes.objects.get(f"ConfigMap/{cluster.config_map}", {}).get("data", {})
        for member in seen.members.members if seen.members and seen.cluster_id else ():
            text = files.get(file_name(member.name), "")
            started = member.client_urls and member in self.etcd.voters and text
            self.check(not started or is_sealed(cluster, member.name, text), "who has started is sealed", member)

    # -- an effect

    def applies(self, cluster: Cluster, manifest: Manifest, status: Mapping[str, Any]) -> None:
        """Before it is there."""
        before = self.kubernetes.objects.get(f"{manifest['kind']}/{manifest['metadata']['name']}")
        if manifest["kind"] != "StatefulSet" or before is None:
            return
        claims = [each["spec"].get("volumeClaimTemplates") for each in (before, manifest)]
        self.check(claims[0] == claims[1], "what makes claims is not changed in place", claims)
        old, new = (of_image(each["spec"]["template"]["spec"]["containers"][0]["image"]) for each in (before, manifest))
        if old != new and status.get("clusterID"):
            noted = status.get("upgrade") or {}
            # Or the version was edited before the first quorum, when there was nothing to take a snapshot of.
            self._releases(new, needed=cluster.upgrade.snapshot and bool(noted.get("snapshot")))

    def _releases(self, version: str, *, needed: bool) -> None:
        """From here on pods that restart run another version."""
        running = [process.version for member in self.etcd.voters if (process := self.etcd.process(member.id))]
        far = [each for each in running if abs(parse(each).minor - parse(version).minor) > 1]
        self.check(not far, "no minor version is skipped", (running, version))
        down = parse(version).minor < self.etcd.agreed
        self.check(not down, "nobody goes below what etcd has agreed on", (self.etcd.agreed, version))
        phases = [each.get("status", {}).get("phase") for each in self.kubernetes.backups.values()]
        self.check("Succeeded" in phases or not needed, "nobody moves without a snapshot", version)

    def restarts(self, pod: Pod) -> None:
        """In the moment in which a roll deletes a pod."""
        etcd = self.etcd
        own = next((member for member in etcd.voters if member.name == pod.name), None)
        others = [member for member in etcd.voters if member is not own]
        down = [m.name for m in others if not (process := etcd.process(m.id)) or not etcd.serves(process)]
        silent = own is None or not (process := etcd.process(own.id)) or not etcd.serves(process)
        left = len(others) - len(down)
        self.check(not down or silent, "a roll restarts nobody while another is down", (pod.name, down))
        self.check(not silent or left >= quorum(len(etcd.voters)), "a roll never costs the quorum", (pod.name, down))
        leads = own is not None and own.id == etcd.leader and bool(others)
        self.check(not leads, "who leads hands over before it restarts", pod.name)
        pods = [self.kubernetes.pods.get(member.name) for member in others]
        going = [other.name for other in pods if other and other.deleting is not None]
        self.check(silent or not going, "a roll restarts one at a time", (pod.name, going))

    def applied(self, manifest: Manifest, status: Mapping[str, Any]) -> None:
        if manifest["kind"] == "ConfigMap" and status.get("clusterID"):
            opened = [name for name, text in manifest["data"].items() if 'initial-cluster-state: "new"' in text]
            self.check(not opened, "`new` only before the first quorum", opened)
            for pod in self.kubernetes.pods.values():  # any member may start again, as it is
                if pod.volume.data and pod.volume.data.member in self.etcd.members and pod.deleting is None:
                    self.kubernetes.read(pod, manifest["data"].get(file_name(pod.name), ""))
        if manifest["kind"] == "StatefulSet" and (replicas := manifest["spec"]["replicas"]):
            cluster = self.kubernetes.cluster
            ordinals = {member.id: self._ordinal(cluster, member.peer_urls) for member in self.etcd.voters}
            going = [number for number in ordinals.values() if number is not None and number >= replicas]
            self.check(not going or not status.get("clusterID"), "a pod goes only after its member", going)

    def deletes_claim(self, claim: Claim) -> None:
        self.check(self._ours(claim.name), "a foreign claim is never deleted", claim)
        self._no_voters("a voter's claim is never deleted", claim.name.removeprefix("data-"), claim.volume.data)

    def deletes_pod(self, pod: Pod, status: Mapping[str, Any]) -> None:
        if status.get("clusterID") and pod.started:
            self._no_voters("a voter's pod is never deleted by force", pod.name, pod.volume.data)

    def _no_voters(self, what: str, pod: str, data: Any) -> None:
        url = self.kubernetes.cluster.peer_url(pod)
        for voter in self.etcd.voters:
            self.check(url not in voter.peer_urls, what, voter)
            self.check(data is None or data.corrupt or data.member != voter.id, what, voter)

    def changed(self, change: Change, *, had_quorum: bool) -> None:
        self.check(self.etcd.has_quorum or not had_quorum, "no step costs the quorum", change)
        learners = [member for member in self.etcd.members.values() if member.is_learner]
        self.check(len(learners) <= 1, "one learner at a time", learners)
        cluster = self.kubernetes.cluster
        ordinal = self._ordinal(cluster, change.member.peer_urls)
        self.check(ordinal is not None, "a stranger is never touched", change)
        if change.action == "promote":
            name = cluster.pod_name(ordinal or 0)
            files = self.kubernetes.objects.get(f"ConfigMap/{cluster.config_map}", {}).get("data", {})
            text = files.get(file_name(name))  # one that is gone is made anew as a sealed one
            self.check(text is None or is_sealed(cluster, name, text), "sealed before it votes", change)

    def _ours(self, name: str) -> bool:
        claim = self.kubernetes.claims.get(name)
        return claim is None or claim.cluster_uid == self.kubernetes.cluster.uid

    def _ordinal(self, cluster: Cluster, urls: tuple[str, ...]) -> int | None:
        return next((n for n in range(20) if cluster.peer_url(cluster.pod_name(n)) in urls), None)
