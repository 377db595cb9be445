"""Invariants that are checked at every effect (docs/architecture.md), against the true state of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    AddLearner,
    ExpandVolumes,
    FormCluster,
    IssueCertificates,
    PromoteLearner,
    RemoveMember,
    ReplaceMember,
    RestartMember,
    SealConfiguration,
    StartMembers,
    StopMembers,
    UpdateObjects,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import template_hash
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.member_config import file_name, is_sealed
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

    # -- plans, made from the current state (except for members that did not answer)

    def planned(self, seen: Situation, plan: Plan) -> None:
        cluster, action = seen.cluster, plan.action
        refs = [*getattr(action, "delete_claims", ()), *getattr(action, "delete_pods", ())]
        started = [ref.name for ref in refs if (pod := self.kubernetes.pods.get(ref.name)) and pod.started]
        deletes = bool(getattr(action, "delete_claims", ())) or bool(started)
        if cluster.paused:
            self.check(action is None, "a paused cluster is not changed", plan)
        changes = isinstance(action, AddLearner | ReplaceMember | PromoteLearner | RemoveMember)
        if seen.observed.memory.cluster_id and not self.etcd.has_quorum:
            self.check(not changes and not deletes, "no deletion or membership change without quorum", plan)
        if any(alarm.alarm == "CORRUPT" for alarm in seen.observed.view.alarms):
            self.check(not isinstance(action, RestartMember), "no member restarts while data is corrupt", plan)
        if seen.observed.view.needs_auth:
            self._check_locked_out(plan, deletes=deletes or bool(refs))
        if isinstance(action, RestartMember):
            self._check_restart_order(cluster, action)
        if changes:
            self._check_membership_change(cluster, plan)
        for ref in getattr(action, "delete_claims", ()):
            self.check(self._is_owned(ref.name), "a PVC of another cluster is never deleted", ref)
        joining = action.pod if isinstance(action, AddLearner | ReplaceMember) else ""
        if joining and (claim := self.kubernetes.claims.get(f"data-{joining}")):
            self.check(claim.cluster_uid == cluster.uid, "a PVC of another cluster is never adopted", claim)

    def _check_locked_out(self, plan: Plan, *, deletes: bool) -> None:
        self.check(plan.phase is not Phase.QUORUM_LOST, "quorum is not called lost while auth refuses", plan)
        allowed = (
            ExpandVolumes,
            FormCluster,
            IssueCertificates,
            SealConfiguration,
            StartMembers,
            StopMembers,
            UpdateObjects,
        )
        self.check(
            plan.action is None or (isinstance(plan.action, allowed) and not deletes),
            "nothing is restarted, removed or deleted while auth refuses",
            plan,
        )

    def reported(self, seen: Situation, status: Mapping[str, Any]) -> None:
        """The status does not claim more than was seen."""
        available = {each["type"]: each["status"] for each in status["conditions"]}["Available"]
        refused = [alarm.alarm for alarm in seen.observed.view.alarms]
        self.check(not refused or available != "True", "Available is never True while writes are refused", refused)

    def _check_restart_order(self, cluster: Cluster, restart: RestartMember) -> None:
        """A rollout restarts the leader last. Checked when the restart is planned."""
        leader = next((m for m in self.etcd.voters if m.id == self.etcd.leader), None)
        current_hash = template_hash(self.kubernetes.objects[f"StatefulSet/{cluster.name}"])
        process = self.etcd.process(leader.id) if leader else None
        if leader is None or leader.name != restart.pod.name or process is None or not self.etcd.is_healthy(process):
            return
        pods = [pod for voter in self.etcd.voters if (pod := self.kubernetes.pods.get(voter.name))]
        stale = [pod.name for pod in pods if pod.template_hash != current_hash and pod.name != leader.name]
        self.check(not stale, "the leader is restarted last", (leader.name, stale))

    def _check_membership_change(self, cluster: Cluster, plan: Plan) -> None:
        action, etcd = plan.action, self.etcd
        removed = action.member_id if isinstance(action, ReplaceMember | RemoveMember) else ""
        joins = action.pod if isinstance(action, AddLearner | ReplaceMember) else ""
        removed_id = int(removed, 16) if removed else 0
        unhealthy = [m for m in etcd.voters if not (process := etcd.process(m.id)) or not etcd.is_healthy(process)]
        learners = [m for m in etcd.members.values() if m.is_learner and m.id != removed_id]
        if joins or isinstance(action, PromoteLearner):
            self.check(
                not [m for m in unhealthy if m.id != removed_id], "no member joins while a voter is down", unhealthy
            )
        if joins:
            self.check(self._is_owned(f"data-{joins}"), "no member joins with the PVC of something else", action)
            self.check(not learners, "one learner at a time", learners)
        if removed_id and removed_id in {member.id for member in etcd.voters}:
            down = {member.id for member in unhealthy}
            self.check(
                not down or removed_id in down, "no healthy voter is removed while another voter is down", unhealthy
            )
            ordinal = self._ordinal(cluster, etcd.members[removed_id].peer_urls)
            wanted = ordinal is not None and ordinal < cluster.size
            # A member with in-memory storage cannot restart, so a rollout replaces it.
            replaceable = cluster.storage.type == "Memory" and plan.phase in (Phase.UPGRADING, Phase.RESTARTING)
            allowed = not wanted or replaceable
            self.check(allowed or self._is_lost(removed_id), "only a lost member is replaced", etcd.members[removed_id])

    def _is_lost(self, member_id: int) -> bool:
        """Whether no pod on a ready node has the data of the member or can get it back."""
        if self.kubernetes.floating and self._may_move(member_id):
            return False
        for pod in self.kubernetes.pods.values():
            data, node = pod.volume.data, self.kubernetes.nodes.get(pod.node or (pod.claim.node if pod.claim else ""))
            ending = pod.deleting is not None and pod.claim is not None and pod.claim.deleting
            if data and data.member == member_id and not data.corrupt and node and node.state == "up" and not ending:
                return False
        for claim in self.kubernetes.claims.values():  # its pod may not exist yet
            data, node = claim.volume.data, self.kubernetes.nodes.get(claim.node)
            if data and data.member == member_id and not data.corrupt and not claim.deleting and node:
                return node.state != "up"
        return True

    def _may_move(self, member_id: int) -> bool:
        """Whether the data of a member is on a volume that no node holds."""
        for claim in self.kubernetes.claims.values():
            data, pod = claim.volume.data, self.kubernetes.pods.get(claim.name.removeprefix("data-"))
            held = pod is not None and pod.node in self.kubernetes.nodes
            if data and data.member == member_id and not data.corrupt and not claim.deleting and not held:
                return True
        return False

    def after_reconcile(self, seen: Situation) -> None:
        """After a reconcile, every member that had started before it is sealed."""
        cluster, view = self.kubernetes.cluster, seen.observed.view
        files = self.kubernetes.objects.get(f"ConfigMap/{cluster.config_map}", {}).get("data", {})
        listed = view.members if view.quorum and seen.observed.memory.cluster_id else ()
        for member in (one.member for one in listed):
            text = files.get(file_name(member.name), "")
            started = member.client_urls and member in self.etcd.voters and text
            self.check(
                not started or is_sealed(cluster, member.name, text), "a member that has started is sealed", member
            )

    # -- effects

    def before_apply(self, cluster: Cluster, manifest: Manifest, status: Mapping[str, Any]) -> None:
        """Check an object before it is applied."""
        self.check(not self.kubernetes.is_foreign(manifest), "a foreign object is never changed", manifest["metadata"])
        before = self.kubernetes.objects.get(f"{manifest['kind']}/{manifest['metadata']['name']}")
        if manifest["kind"] != "StatefulSet" or before is None:
            return
        claims = [each["spec"].get("volumeClaimTemplates") for each in (before, manifest)]
        self.check(claims[0] == claims[1], "volumeClaimTemplates are not changed in place", claims)
        old, new = (of_image(each["spec"]["template"]["spec"]["containers"][0]["image"]) for each in (before, manifest))
        if old != new and status.get("clusterID"):
            upgrade = status.get("upgrade") or {}
            # No snapshot if the version was changed before the first quorum, when there was no data.
            self._check_version_change(
                new, snapshot_required=cluster.upgrade.snapshot and bool(upgrade.get("snapshot"))
            )

    def _check_version_change(self, version: str, *, snapshot_required: bool) -> None:
        """Check a version change of the StatefulSet: from now on, pods that restart run this version."""
        running = [process.version for member in self.etcd.voters if (process := self.etcd.process(member.id))]
        far = [each for each in running if abs(parse(each).minor - parse(version).minor) > 1]
        self.check(not far, "no minor version is skipped", (running, version))
        down = parse(version).minor < self.etcd.cluster_minor
        self.check(not down, "no member runs a version below the cluster version", (self.etcd.cluster_minor, version))
        phases = [each.get("status", {}).get("phase") for each in self.kubernetes.backups.values()]
        self.check(
            "Succeeded" in phases or not snapshot_required, "no member changes its version without a snapshot", version
        )

    def before_restart(self, pod: Pod) -> None:
        """Check the restart of a member, when a rollout deletes its pod."""
        etcd = self.etcd
        own = next((member for member in etcd.voters if member.name == pod.name), None)
        others = [member for member in etcd.voters if member is not own]
        down = [m.name for m in others if not (process := etcd.process(m.id)) or not etcd.is_healthy(process)]
        unavailable = own is None or not (process := etcd.process(own.id)) or not etcd.is_healthy(process)
        left = len(others) - len(down)
        self.check(
            not down or unavailable, "a rollout restarts no member while another voter is down", (pod.name, down)
        )
        self.check(
            not unavailable or left >= quorum(len(etcd.voters)), "a rollout never causes quorum loss", (pod.name, down)
        )
        is_leader = own is not None and own.id == etcd.leader and bool(others)
        self.check(not is_leader, "leadership is moved before the leader restarts", pod.name)
        pods = [self.kubernetes.pods.get(member.name) for member in others]
        terminating = [other.name for other in pods if other and other.deleting is not None]
        self.check(unavailable or not terminating, "a rollout restarts one member at a time", (pod.name, terminating))

    def after_apply(self, manifest: Manifest, status: Mapping[str, Any], restarting: str = "") -> None:
        if manifest["kind"] == "ConfigMap" and status.get("clusterID"):
            opened = [name for name, text in manifest["data"].items() if 'initial-cluster-state: "new"' in text]
            self.check(not opened, "initial-cluster-state `new` only before the first quorum", opened)
            for pod in self.kubernetes.pods.values():  # any container may restart with this file
                current = pod.deleting is None and pod.name != restarting
                if pod.volume.data and pod.volume.data.member in self.etcd.members and current:
                    self.kubernetes.check_config(pod, manifest["data"].get(file_name(pod.name), ""))
        if manifest["kind"] == "StatefulSet" and (replicas := manifest["spec"]["replicas"]):
            cluster = self.kubernetes.cluster
            ordinals = {member.id: self._ordinal(cluster, member.peer_urls) for member in self.etcd.voters}
            removed = [number for number in ordinals.values() if number is not None and number >= replicas]
            self.check(not removed or not status.get("clusterID"), "a pod is removed only after its member", removed)

    def before_claim_deletion(self, claim: Claim) -> None:
        self.check(self._is_owned(claim.name), "a PVC of another cluster is never deleted", claim)
        self._check_no_voter("a voter's PVC is never deleted", claim.name.removeprefix("data-"), claim.volume.data)

    def before_forced_deletion(self, pod: Pod, status: Mapping[str, Any]) -> None:
        if status.get("clusterID") and pod.started:
            self._check_no_voter("a voter's pod is never force-deleted", pod.name, pod.volume.data)

    def _check_no_voter(self, what: str, pod: str, data: Any) -> None:
        url = self.kubernetes.cluster.peer_url(pod)
        for voter in self.etcd.voters:
            self.check(url not in voter.peer_urls, what, voter)
            self.check(data is None or data.corrupt or data.member != voter.id, what, voter)

    def after_change(self, change: Change, *, had_quorum: bool) -> None:
        self.check(self.etcd.has_quorum or not had_quorum, "no membership change causes quorum loss", change)
        learners = [member for member in self.etcd.members.values() if member.is_learner]
        self.check(len(learners) <= 1, "one learner at a time", learners)
        cluster = self.kubernetes.cluster
        ordinal = self._ordinal(cluster, change.member.peer_urls)
        self.check(ordinal is not None, "an unmanaged member is never changed", change)
        if change.action == "promote":
            name = cluster.pod_name(ordinal or 0)
            files = self.kubernetes.objects.get(f"ConfigMap/{cluster.config_map}", {}).get("data", {})
            text = files.get(file_name(name))  # a missing file is recreated as a sealed one
            self.check(
                text is None or is_sealed(cluster, name, text), "a learner is sealed before its promotion", change
            )

    def _is_owned(self, name: str) -> bool:
        claim = self.kubernetes.claims.get(name)
        return claim is None or claim.cluster_uid == self.kubernetes.cluster.uid

    def _ordinal(self, cluster: Cluster, urls: tuple[str, ...]) -> int | None:
        return next((n for n in range(20) if cluster.peer_url(cluster.pod_name(n)) in urls), None)
