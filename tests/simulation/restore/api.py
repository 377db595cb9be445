"""API server of the model: the methods of kube.client.Kube that backups and restores use, on a dict of objects."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import HELD_BY
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Asked
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.conditions import time_text
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest, Manifests
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.ownership import API_VERSION

from ..etcd import ViolationError
from ..kubernetes import moment

NAMESPACE = "default"
_FINALIZED = ("EtcdRestore", "EtcdBackup", "EtcdCluster", "PersistentVolumeClaim")  # deleted in two steps


@dataclass
class Api:
    before_effect: Callable[[str], None]  # other moves happen, or the operator crashes
    say: Callable[[str], None]
    now: int = 0
    actor: str = ""  # the object that is reconciled
    logs: dict[str, str] = field(default_factory=dict)  # of the container `check`, by pod
    objects: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    # -- reading

    def get(self, kind: str, _namespace: str | None, name: str) -> Manifest | None:
        return self.objects.get((kind, name))

    def list(self, kind: str, _namespace: str, selector: str) -> Manifests:
        key, _, value = selector.partition("=")
        found = [each for (one, _), each in self.objects.items() if one == kind]
        return [each for each in found if not key or each["metadata"].get("labels", {}).get(key) == value]

    def read(self, asked: Sequence[Asked]) -> Iterator[Manifests]:
        for each in asked:
            found = self.get(each.kind, each.namespace, each.name)
            yield [found] if found else []

    def log(self, _namespace: str, pod: str, _container: str) -> str | None:
        return self.logs.get(pod)

    # -- writing, by the operator

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest | None:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        if kind == "Event":
            return manifest
        if dry_run:
            return {**manifest, "metadata": {**manifest["metadata"], "uid": ""}}
        self.before_effect(f"create {kind}/{name}")
        return None if (kind, name) in self.objects else self.put(manifest)

    def takes_nothing_new(self, _manifest: Manifest) -> bool:
        return False

    def annotate(
        self, kind: str, _namespace: str, name: str, annotations: dict[str, str | None], resource_version: str = ""
    ) -> Manifest | None:
        self.before_effect(f"annotate {kind}/{name} {annotations}")
        found = self.objects.get((kind, name))
        if not found or (resource_version and found["metadata"]["resourceVersion"] != resource_version):
            return None
        have = found["metadata"].get("annotations", {})
        if HELD_BY in annotations:
            holder = have.get(HELD_BY, "")
            if holder and holder != self.actor:
                raise ViolationError(f"only its holder takes or releases a hold: {self.actor} acts on that of {holder}")
        wanted = {key: value for key, value in {**have, **annotations}.items() if value is not None}
        return self.change(kind, name, annotations=wanted)

    def patch_status(
        self, kind: str, _namespace: str, name: str, status: Manifest, resource_version: str = ""
    ) -> Manifest | None:
        self.before_effect(f"status {kind}/{name} {status.get('phase', status)}: {status.get('message', '')}")
        found = self.objects.get((kind, name))
        if not found or (resource_version and found["metadata"]["resourceVersion"] != resource_version):
            return None
        merged = {key: value for key, value in {**found.get("status", {}), **status}.items() if value is not None}
        return self.set_status(kind, name, merged)

    def delete(
        self, kind: str, _namespace: str, name: str, same: Mapping[str, str] | None = None, _how: str = ""
    ) -> bool:
        self.before_effect(f"delete {kind}/{name}")
        found = self.objects.get((kind, name))
        if not found or any(found["metadata"][key] != value for key, value in (same or {}).items()):
            return False
        self.remove(kind, name)
        return True

    # -- writing, by everybody else

    def put(self, manifest: Manifest, status: dict[str, Any] | None = None) -> Manifest:
        number = next(self._numbers)
        meta = {
            "namespace": NAMESPACE,
            "uid": f"{number:08}-uid",
            "creationTimestamp": time_text(moment(self.now)),
            **manifest["metadata"],
        }
        kept = {"apiVersion": API_VERSION, **manifest, "metadata": {**meta, "resourceVersion": str(number)}} | (
            {"status": status} if status else {}
        )
        self.objects[manifest["kind"], meta["name"]] = kept
        return kept

    def change(self, kind: str, name: str, **meta: Any) -> Manifest:
        found = self.objects[kind, name]
        if all(found["metadata"].get(key) == value for key, value in meta.items()):
            return found
        changed = {**found, "metadata": {**found["metadata"], **meta, "resourceVersion": str(next(self._numbers))}}
        self.objects[kind, name] = changed
        return changed

    def set_status(self, kind: str, name: str, status: dict[str, Any]) -> Manifest:
        found = self.objects[kind, name]
        if found.get("status") == status:
            return found
        self.objects[kind, name] = {**found, "status": status}
        return self.change(kind, name, changed=next(self._numbers))

    def remove(self, kind: str, name: str) -> None:
        """Delete an object; one with a finalizer is marked."""
        if kind in _FINALIZED:
            if "deletionTimestamp" not in self.objects[kind, name]["metadata"]:
                self.change(kind, name, deletionTimestamp=time_text(moment(self.now)))
        else:
            del self.objects[kind, name]
