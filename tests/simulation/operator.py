"""The operator: the real planner, status and role on what the model shows. It may crash before any effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import planner
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import status as told
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observed
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Plan, Step
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import rollout
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import UNAVAILABLE, EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import decide
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import of_image, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.conditions import differs
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.events import Event
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.modules import etcdcluster_member

from . import eyes, role
from .etcd import read
from .invariants import Invariants
from .kubernetes import Kubernetes, moment


class CrashError(Exception):
    """The operator is killed."""


@dataclass
class Operator:
    kubernetes: Kubernetes
    invariants: Invariants
    before_effect: Callable[[str], None]  # the world moves on, or the operator crashes
    status: dict[str, Any] = field(default_factory=dict)
    last: Plan | None = None
    refused: bool = False

    def run(self, cluster: Cluster, deaf: frozenset[str] = frozenset()) -> bool:
        """One reconcile; tells whether it had nothing to do and said nothing."""
        seen = eyes.look(self.kubernetes, self.status, deaf)
        plan = self.last = planner.plan(cluster, seen)
        self.invariants.planned(cluster, seen, plan)
        after, news = self._told(cluster, seen, plan)
        self.refused = False
        quiet = not news and not differs(after, self.status) and plan.step is Step.IDLE
        try:
            if differs(after, self.status):
                self.before_effect(f"status {plan.phase}/{plan.reason}: {plan.message}")
                self.status = {name: value for name, value in after.items() if value is not None}
            role_values = {"etcdcluster_plan": vars(plan), "ansible_operator_meta": {"namespace": "", "name": ""}}
            if plan.step is not Step.IDLE:
                role.run(plan.step, role_values, lambda name, arguments: self._module(cluster, name, arguments))
        except CrashError:
            return False
        if plan.step is Step.IDLE and not quiet:
            self._again(cluster, seen)
        if not cluster.paused and not self.refused:
            self.invariants.ran(seen)
        return quiet

    def _told(self, cluster: Cluster, seen: Observed, plan: Plan) -> tuple[dict[str, Any], list[Event]]:
        return told.status(cluster, seen, plan, self.status), told.events(cluster, plan, self.status)

    def _again(self, cluster: Cluster, seen: Observed) -> None:
        """Another look at the same things finds nothing more to do or to say."""
        seen = replace(seen, **eyes.remembered(self.status))
        plan = planner.plan(cluster, seen)
        after, news = self._told(cluster, seen, plan)
        self.invariants.check(not news, "a second run has no event", news)
        self.invariants.check(not differs(after, self.status), "a second run writes no status", after)
        self.invariants.check(plan.step is Step.IDLE, "a second run has no step", plan)

    # -- the modules of the role

    def _module(self, cluster: Cluster, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name == "kube_apply":
            for manifest in arguments["objects"]:
                self._apply(cluster, manifest)
        elif name == "kube_delete":
            for each in arguments["names"]:
                self._delete(arguments["kind"], each, force=arguments.get("force", False))
        elif name == "etcdcluster_member":
            return self._member(cluster, {"pod": None, "id": None, **arguments})
        elif name == "etcdcluster_restart":
            return self._restart(arguments)
        elif name == "etcdcluster_downgrade":
            return self._downgrade(arguments["version"])
        return {}

    def _apply(self, cluster: Cluster, manifest: Manifest) -> None:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        self.before_effect(f"apply {kind}/{name} {_summary(manifest)}")
        if kind == "PersistentVolumeClaim":
            if claim := self.kubernetes.claims.get(name):
                claim.wanted = manifest["spec"]["resources"]["requests"]["storage"]
        elif kind == "EtcdBackup":
            created = {"creationTimestamp": moment(self.kubernetes.now).isoformat()}
            made = {**manifest, "metadata": manifest["metadata"] | created}
            self.kubernetes.backups.setdefault(name, made)
        else:
            self.invariants.applies(cluster, manifest, self.status)
            self.kubernetes.objects[f"{kind}/{name}"] = manifest
            self.invariants.applied(manifest, self.status)

    def _delete(self, kind: str, name: str, *, force: bool) -> None:
        match kind:
            case "PersistentVolumeClaim":
                self._delete_claim(name)
            case "EtcdBackup":
                self.before_effect(f"delete backup {name}")
                self.kubernetes.backups.pop(name, None)
            case "StatefulSet":  # without its pods
                self.before_effect(f"delete StatefulSet {name}")
                self.kubernetes.objects.pop(f"StatefulSet/{name}", None)
            case _:
                self._delete_pod(name, force=force)

    def _restart(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """As etcdcluster_restart does it: ask all again, hand leadership over, delete the pod that is meant."""
        name, lead = arguments["pod"], int(arguments["lead"] or "0", 16)
        self.before_effect(f"restart {name}")
        etcd = self.kubernetes.etcd
        voters = [self._voter(member) for member in etcd.voters]
        try:
            if etcd.leading is None:
                raise ValueError("the cluster has no quorum")
            heir = rollout.gate(voters, name, lead)
        except ValueError as error:
            self.invariants.say(f"  refused: {error}")
            self.refused = True
            return {"refused": str(error)}
        if heir:
            self.invariants.say(f"  {heir.name} leads")
            etcd.leader, etcd.term = heir.id, etcd.term + 1
        for manifest in arguments["objects"]:
            self.kubernetes.objects[f"{manifest['kind']}/{manifest['metadata']['name']}"] = manifest
        pod = self.kubernetes.pods.get(name)
        if pod and pod.uid == arguments["uid"]:
            self.invariants.restarts(pod)
            self.kubernetes.delete_pod(pod)
        return {"refused": ""}

    def _voter(self, member: Member) -> rollout.Voter:
        etcd, process = self.kubernetes.etcd, self.kubernetes.etcd.process(member.id)
        pod = self.kubernetes.pods.get(process.pod) if process else None
        serves = process is not None and pod is not None and pod.deleting is None and etcd.serves(process)
        log = process.data.log if process else 0
        return rollout.Voter(member.id, member.name, serves, log, member.id == etcd.leader)

    def _downgrade(self, version: str) -> dict[str, Any]:
        self.before_effect(f"downgrade {version or 'cancelled'}")
        minor = parse(version).minor if version else 0
        try:
            if self.kubernetes.etcd.downgrade != minor:
                self.kubernetes.etcd.prepare(minor)
        except EtcdError as error:
            self.invariants.say(f"  refused: {error}")
            self.refused = True
            return {"refused": str(error)}
        return {"refused": ""}

    def _delete_claim(self, name: str) -> None:
        self.before_effect(f"delete claim {name}")
        if (claim := self.kubernetes.claims.get(name)) and not claim.deleting:
            self.invariants.deletes_claim(claim)
            claim.deleting = True

    def _delete_pod(self, name: str, *, force: bool) -> None:
        self.before_effect(f"delete pod {name}{' by force' if force else ''}")
        if pod := self.kubernetes.pods.get(name):
            self.invariants.deletes_pod(pod, self.status)
            self.kubernetes.delete_pod(pod, force=force)

    def _member(self, cluster: Cluster, arguments: dict[str, Any]) -> dict[str, Any]:
        """As etcdcluster_member does it: ask all again, decide, hand leadership over, change."""
        self.before_effect(f"member {arguments['state']} {arguments['pod'] or arguments['id']}")
        etcd, now = self.kubernetes.etcd, self.kubernetes.now
        members = etcd.member_list.members
        processes = [pod.process for pod in self.kubernetes.pods.values() if pod.process]
        healthy = {one.data.member for one in processes if etcd.serves(one)}
        had_quorum = etcd.has_quorum
        try:
            if etcd.leading is None:
                raise EtcdError(UNAVAILABLE, "the cluster has no quorum, so its members can't be changed")
            change = decide(etcdcluster_member._wanted(cluster, arguments), members, healthy)
            if change is None:
                return {"refused": ""}
            if change.action == "remove" and change.member.id == etcd.leader:
                heirs = [one for one in etcd.connected if one.data.member != etcd.leader]
                best = max(heirs, key=lambda one: one.data.log, default=None)
                etcd.leader = best.data.member if best else etcd.leader
            match change.action:
                case "add":
                    etcd.add(change.member.peer_urls, learner=change.member.is_learner, now=now)
                case "promote":
                    etcd.promote(change.member.id)
                case "remove":
                    etcd.remove(change.member.id, now=now)
        except EtcdError as error:
            self.invariants.say(f"  refused: {error}")
            self.refused = True
            return {"refused": str(error)}
        self.invariants.changed(change, had_quorum=had_quorum)
        return {"refused": ""}


def _summary(manifest: Manifest) -> str:
    if manifest["kind"] == "StatefulSet":
        image = manifest["spec"]["template"]["spec"]["containers"][0]["image"]
        return f"replicas={manifest['spec']['replicas']} {of_image(image)}"
    if manifest["kind"] != "ConfigMap":
        return ""
    return " ".join(f"{name.removesuffix('.yaml')}:{_kind(text)}" for name, text in manifest.get("data", {}).items())


def _kind(text: str) -> str:
    state, initial = read(text)
    return state if state == "new" else "sealed" if len(initial) == 1 else f"open({len(initial)})"
