"""Runs the real engine, planner, status, role and acting code on the model. It may crash before any effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils import reconcile as engine
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import acting, members, observe, restart
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.memory import recall
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.situation import Situation, situation_of
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import conditions, effects
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Asked, Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import ChangedError
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan
from ansible_collections.etcdops.etcd.plugins.modules import etcdcluster_plan

from . import role
from .api import Api
from .invariants import Invariants
from .kubernetes import Kubernetes, moment
from .members import Connection


class CrashError(Exception):
    """The operator is killed."""


@dataclass
class Operator:
    kubernetes: Kubernetes
    invariants: Invariants
    before_effect: Callable[[str], None]  # other moves happen, or the operator crashes
    api: Api = field(init=False)
    last: Plan | None = None
    interrupted: bool = False  # another operator acted during this reconcile
    refused: bool = False
    phases: set[tuple[str, str]] = field(default_factory=set)  # transitions that were reported
    _unreachable: frozenset[str] = frozenset()
    _atomic: bool = False  # an acting module is between reading from etcd and acting on it
    _seen: Situation | None = None

    def __post_init__(self) -> None:
        self.api = Api(self.kubernetes, self.invariants, self._before_effect)

    @property
    def status(self) -> dict[str, Any]:
        return self.api.status

    def run(self, cluster: Cluster, unreachable: frozenset[str] = frozenset()) -> bool:
        """Run one reconcile; whether it had nothing to do and nothing to report."""
        self._unreachable, self.refused, self.interrupted = unreachable, False, False
        before, events = self.status, self.api.events
        try:
            with self._in_model():
                changed, plan = engine.reconcile(self._kind, cluster.namespace, cluster.name, write=True)
                self.phases.add((before.get("phase", "Pending"), self.status.get("phase", "Pending")))
                if plan.action is not None:
                    role.run(plan, lambda name, arguments: self._module(cluster, name, arguments))
        except CrashError:
            return False
        assert self._seen
        if self.interrupted:  # what it saw is not what there is
            return False
        quiet = not changed and events == self.api.events and plan.action is None
        if plan.action is None and not quiet:
            self._check_idempotent(self._seen)
        self.invariants.reported(self._seen, self.status)
        if not cluster.paused and not self.refused:
            self.invariants.after_reconcile(self._seen)
        return quiet

    @property
    def _kind(self) -> engine.Kind[Any, Any]:
        return replace(etcdcluster_plan.KIND, validate=self._validated)

    def _validated(self, api: Kube, seen: Situation, planned: Plan) -> Plan:
        plan = self.last = etcdcluster_plan.KIND.validate(api, seen, planned)
        self._seen = seen
        self.invariants.planned(seen, plan)
        return plan

    @contextmanager
    def _in_model(self) -> Iterator[None]:
        """Replace the API server, the members and the clock with the model."""

        def connect(cluster: Cluster, *_: Any, **__: Any) -> Connection:
            return Connection(self.kubernetes, self.invariants, cluster, self._unreachable)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "connect", lambda: self.api)
            patch.setattr(members, "connect", connect)
            patch.setattr(observe, "clock", lambda: moment(self.kubernetes.now))
            patch.setattr(observe, "concurrently", lambda one, other: (one(), other()))
            yield

    def _check_idempotent(self, seen: Situation) -> None:
        """Check that a second reconcile of the same state has nothing to do and nothing to report."""
        observed = replace(seen.observed, memory=recall(self.status))
        kind, again = etcdcluster_plan.KIND, situation_of(seen.cluster, observed)
        plan = kind.validate(cast(Kube, self.api), again, kind.plan(seen.cluster, again, self.status))
        after = kind.status(seen.cluster, again, plan, self.status)
        new_events = kind.events(seen.cluster, plan, self.status)
        self.invariants.check(not new_events, "a second reconcile emits no event", new_events)
        self.invariants.check(not conditions.differs(after, self.status), "a second reconcile writes no status", after)
        self.invariants.check(plan.action is None, "a second reconcile has no action", plan)

    def _before_effect(self, what: str) -> None:
        if self._atomic:
            self.invariants.say(f"  {what}")
        else:
            self.before_effect(what)

    # -- the modules of the role

    def _module(self, cluster: Cluster, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        api = cast(Kube, self.api)
        if name == "kube_apply":
            make = effects.create_all if arguments.get("create_only") else effects.apply_all
            return self._refused(make(api, arguments["objects"]).refused)
        if name == "kube_delete":
            how: effects.How = "force" if arguments.get("force") else "orphan" if arguments.get("orphan") else ""
            effects.delete_refs(api, Asked(arguments["kind"], cluster.namespace), arguments["objects"], how)
            return {}
        if name == "etcdcluster_recreate":
            return self._recreate(cluster, arguments)
        return self._act(cluster, name, arguments) if name != "etcdcluster_certificates" else {}

    def _recreate(self, cluster: Cluster, arguments: dict[str, Any]) -> dict[str, Any]:
        self.before_effect("recreate")
        self._atomic = True
        try:
            acting.recreate(cast(Kube, self.api), cluster.namespace, cluster.name, arguments["pods"])
        except ChangedError as error:
            return self._refused(str(error))
        finally:
            self._atomic = False
        return {}

    def _act(self, cluster: Cluster, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run an acting module: read from the members again, then act on the answers."""
        values = " ".join(str(value) for key, value in arguments.items() if key in ("state", "pod", "id", "version"))
        self._unreachable = frozenset()  # it asks again: an answer that was missed once is not missed again
        self.before_effect(f"{name.removeprefix('etcdcluster_')} {values}")
        self._atomic, self.api.restarting = True, arguments["pod"] if name == "etcdcluster_restart" else ""
        try:
            with acting.reach(cast(Kube, self.api), cluster.namespace, cluster.name) as live:
                match name:
                    case "etcdcluster_member":
                        acting.change_member(live, arguments["state"], arguments.get("pod"), arguments.get("id"))
                    case "etcdcluster_restart":
                        objects = tuple(arguments["objects"])
                        transferee = arguments["transferee"]
                        restart.restart_member(
                            live, restart.Restart(arguments["pod"], arguments["uid"], transferee, objects)
                        )
                    case "etcdcluster_vacate":
                        acting.vacate(live, arguments["claims"], arguments["pods"])
                    case "etcdcluster_downgrade":
                        acting.set_downgrade(live, arguments["version"])
        except (ChangedError, EtcdError) as error:
            return self._refused(str(error))
        finally:
            self._atomic, self.api.restarting = False, ""
        return self._refused("")

    def _refused(self, why: str) -> dict[str, Any]:
        if why:
            self.invariants.say(f"  refused: {why}")
            self.refused = True
        return {"refused": why}
