"""What must hold after every effect (DESIGN.md 6), judged by what is true in the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    AddLearner,
    PromoteLearner,
    RemoveMember,
    ReplaceMember,
    RestartMember,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.config import file_name, is_sealed
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import template_hash
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.situation import Situation
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import Change, quorum
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import of_image, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan

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

    def planned(self, seen: Situation, plan: Plan) -> None:
        cluster, action = seen.cluster, plan.action
        refs = [*getattr(action, "delete_claims", ()), *getattr(action, "delete_pods", ())]
        started = [ref.name for ref in refs if (pod := self.kubernetes.pods.get(ref.name)) and pod.started]
        deletes = bool(getattr(action, "delete_claims", ())) or bool(started)
        if cluster.paused:
            self.check(action is None, "paused means hands off", plan)
        changes = isinstance(action, AddLearner | ReplaceMember | PromoteLearner | RemoveMember)
        if seen.observed.memory.cluster_id and not self.etcd.has_quorum:
            self.check(not changes and not deletes, "nothing is deleted or changed without quorum", plan)
        if isinstance(action, RestartMember):
            self._turn(cluster, action)
        if changes:
            self._one_change(cluster, plan)
        for ref in getattr(action, "delete_claims", ()):
            self.check(self._ours(ref.name), "a foreign claim is never deleted", ref)
        joining = action.pod if isinstance(action, AddLearner | ReplaceMember) else ""
        if joining and (claim := self.kubernetes.claims.get(f"data-{joining}")):
            self.check(claim.cluster_uid == cluster.uid, "a foreign claim is never adopted", claim)

    def _turn(self, cluster: Cluster, restart: RestartMember) -> None:
        """Whose turn is it in a rollout? Judged when it is planned."""
        leads = next((m for m in self.etcd.voters if m.id == self.etcd.leader), None)
        made = template_hash(self.kubernetes.objects[f"StatefulSet/{cluster.name}"])
        process = self.etcd.process(leads.id) if leads else None
        if leads is None or leads.name != restart.pod.name or process is None or not self.etcd.serves(process):
            return
        pods = [pod for name in self.etcd.voters if (pod := self.kubernetes.pods.get(name.name))]
        stale = [pod.name for pod in pods if pod.template_hash != made and pod.name != leads.name]
        self.check(not stale, "the leader is the last", (leads.name, stale))

    def _one_change(self, cluster: Cluster, plan: Plan) -> None:
        action, etcd = plan.action, self.etcd
        removed = action.member_id if isinstance(action, ReplaceMember | RemoveMember) else ""
        joins = isinstance(action, AddLearner | ReplaceMember)
        going = int(removed, 16) if removed else 0
        unwell = [m for m in etcd.voters if not (process := etcd.process(m.id)) or not etcd.serves(process)]
        learners = [m for m in etcd.members.values() if m.is_learner and m.id != going]
        if joins or isinstance(action, PromoteLearner):
            self.check(not [m for m in unwell if m.id != going], "nobody joins while a voter is down", unwell)
        if joins:
            self.check(not learners, "one learner at a time", learners)
        if going and going in {member.id for member in etcd.voters}:
            down = {member.id for member in unwell}
            self.check(not down or going in down, "no healthy voter is removed while another is down", unwell)
            ordinal = self._ordinal(cluster, etcd.members[going].peer_urls)
            wanted = ordinal is not None and ordinal < cluster.size
            # In memory no member can restart, so a new member takes the slot.
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

    def ran(self, seen: Situation) -> None:
        """After a run no member is unsealed that had started before it."""
        cluster, view = self.kubernetes.cluster, seen.observed.view
        files = self.kubernetes.objects.get(f"ConfigMap/{cluster.config_map}", {}).get("data", {})
        listed = view.members if view.quorum and seen.observed.memory.cluster_id else ()
        for member in (one.member for one in listed):
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

    def applied(self, manifest: Manifest, status: Mapping[str, Any], restarting: str = "") -> None:
        if manifest["kind"] == "ConfigMap" and status.get("clusterID"):
            opened = [name for name, text in manifest["data"].items() if 'initial-cluster-state: "new"' in text]
            self.check(not opened, "`new` only before the first quorum", opened)
            for pod in self.kubernetes.pods.values():  # any member may start again, as it is
                current = pod.deleting is None and pod.name != restarting
                if pod.volume.data and pod.volume.data.member in self.etcd.members and current:
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
