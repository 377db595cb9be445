"""Runs the real engine, planners, roles and acting code of backups and restores on the model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, cast

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils import reconcile as engine
from ansible_collections.etcdops.etcd.plugins.module_utils.backup import observe as backup_observe
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import effects
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Asked, Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import acting
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import observe as restore_observe
from ansible_collections.etcdops.etcd.plugins.modules import etcdbackup_plan, etcdrestore_plan

from .. import role
from ..kubernetes import moment
from ..operator import CrashError
from .api import NAMESPACE, Api

KINDS = {"EtcdRestore": etcdrestore_plan, "EtcdBackup": etcdbackup_plan}


@dataclass
class Operator:
    api: Api

    def run(self, kind: str, name: str) -> Plan | None:
        """Run one reconcile; None when the operator crashed."""
        before, self.api.actor = self.api.actor, name
        try:
            _, plan = engine.reconcile(KINDS[kind].KIND, NAMESPACE, name, write=True)
            if plan.action is not None:
                role.run(plan, self._module, kind.lower())
            found = self.api.objects.get((kind, name))
            if plan.finalized and found and "deletionTimestamp" in found["metadata"]:
                del self.api.objects[kind, name]
        except CrashError:
            return None
        finally:
            self.api.actor = before
        return plan

    @contextmanager
    def in_model(self) -> Iterator[None]:
        """Replace the API server and the clock with the model."""
        api = self.api

        class Clock(datetime):
            @classmethod
            def now(cls, _tz: tzinfo | None = None) -> Any:
                return moment(api.now)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "connect", lambda: api)
            patch.setenv("OPERATOR_IMAGE", "operator:1")
            for module in (backup_observe, restore_observe):
                patch.setattr(module, "datetime", Clock)
            yield

    def _module(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """A module of the role."""
        api = cast(Kube, self.api)
        match name:
            case "kube_apply":
                effects.create_all(api, arguments["objects"])
            case "kube_delete":
                asked = [Asked(arguments["kind"], NAMESPACE, each) for each in arguments.get("names", [])]
                effects.delete_found(api, asked)
                effects.delete_refs(api, Asked(arguments["kind"], NAMESPACE), arguments.get("objects", []))
            case "etcdcluster_annotate":
                act = acting.start_restored if arguments.get("forget_id") else acting.annotate
                act(api, NAMESPACE, arguments["name"], arguments["annotations"], arguments["resource_version"])
        return {}
