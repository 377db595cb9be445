"""The operator: the real planner, status and role on what the model shows. It may crash before any effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils import planner, reporting
from ansible_collections.etcdops.etcd.plugins.module_utils import status as told
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import UNAVAILABLE, EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.membership import decide
from ansible_collections.etcdops.etcd.plugins.module_utils.observed import Observed
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan, Step
from ansible_collections.etcdops.etcd.plugins.module_utils.spec import Cluster
from ansible_collections.etcdops.etcd.plugins.modules import etcdcluster_member

from . import eyes, role
from .etcd import read
from .invariants import Invariants
from .kubernetes import Kubernetes


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
        quiet = not news and not reporting.differs(after, self.status) and plan.step is Step.IDLE
        try:
            if reporting.differs(after, self.status):
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

    def _told(self, cluster: Cluster, seen: Observed, plan: Plan) -> tuple[dict[str, Any], list[reporting.Event]]:
        return told.status(cluster, seen, plan, self.status), told.events(cluster, plan, self.status)

    def _again(self, cluster: Cluster, seen: Observed) -> None:
        """Another look at the same things finds nothing more to do or to say."""
        seen = replace(seen, **eyes.remembered(self.status))
        plan = planner.plan(cluster, seen)
        after, news = self._told(cluster, seen, plan)
        self.invariants.check(not news, "a second run has no event", news)
        self.invariants.check(not reporting.differs(after, self.status), "a second run writes no status", after)
        self.invariants.check(plan.step is Step.IDLE, "a second run has no step", plan)

    # -- the modules of the role

    def _module(self, cluster: Cluster, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name == "kube_apply":
            for manifest in arguments["objects"]:
                self._apply(manifest)
        elif name == "kube_delete":
            for each in arguments["names"]:
                if arguments["kind"] == "PersistentVolumeClaim":
                    self._delete_claim(each)
                else:
                    self._delete_pod(each, force=arguments.get("force", False))
        elif name == "etcdcluster_member":
            return self._member(cluster, {"pod": None, "id": None, **arguments})
        return {}

    def _apply(self, manifest: Manifest) -> None:
        key = f"{manifest['kind']}/{manifest['metadata']['name']}"
        self.before_effect(f"apply {key} {_summary(manifest)}")
        self.kubernetes.objects[key] = manifest
        self.invariants.applied(manifest, self.status)

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
        return f"replicas={manifest['spec']['replicas']}"
    return " ".join(f"{name.removesuffix('.yaml')}:{_kind(text)}" for name, text in manifest.get("data", {}).items())


def _kind(text: str) -> str:
    state, initial = read(text)
    return state if state == "new" else "sealed" if len(initial) == 1 else f"open({len(initial)})"
