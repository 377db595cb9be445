"""API server of the model: the methods of kube.client.Kube that the operator calls, on the model's objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import TEMPLATE_HASH, UID_LABEL
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import of_image
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Asked
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest, Manifests

from .etcd import read as read_file
from .invariants import Invariants
from .kubernetes import MISSING_IMAGES, Claim, Kubernetes, Pod, moment

CLUSTER = "EtcdCluster"
REJECTED = "rejected"  # a label of pods that the API server refuses


@dataclass
class Api:
    kubernetes: Kubernetes
    invariants: Invariants
    before_effect: Callable[[str], None]  # other moves happen, or the operator crashes
    events: int = 0
    restarting: str = ""  # the pod that is deleted right after its configuration is applied

    @property
    def status(self) -> dict[str, Any]:
        return self.kubernetes.status

    # -- reading

    def get(self, kind: str, _namespace: str | None, name: str) -> Manifest | None:
        model = self.kubernetes
        if kind == CLUSTER:
            return resource(model.cluster, self.status, model.statuses)
        if kind == "StorageClass":
            return {"allowVolumeExpansion": model.expandable}
        if kind == "PersistentVolume":
            return volume_manifest(model.claims[name.removeprefix("volume-")].node, floating=model.floating)
        if kind == "Node":
            return node_manifest(model.nodes[name].state) if name in model.nodes else None
        if kind == "EtcdBackup":
            return {**model.backups[name]} if name in model.backups else None
        return model.objects.get(f"{kind}/{name}") or next(
            (each for each in self._all(kind) if each["metadata"]["name"] == name), None
        )

    def list(self, kind: str, _namespace: str | None, selector: str) -> Manifests:
        if kind == "Node":
            return [
                node_manifest(node.state) for name, node in self.kubernetes.nodes.items() if f"({name})" in selector
            ]
        return self._listed(kind)

    def read(self, asked: Sequence[Asked]) -> Iterator[Manifests]:
        for each in asked:
            found = self.get(each.kind, each.namespace, each.name) if each.name else None
            yield self._listed(each.kind) if not each.name else [found] if found else []

    def _listed(self, kind: str) -> Manifests:
        """Those with the labels of the cluster, as all pods have them."""
        return [each for each in self._all(kind) if kind == "Pod" or "labels" in each["metadata"]]

    def _all(self, kind: str) -> Manifests:
        if kind == "Pod":
            return [pod_manifest(pod) for pod in self.kubernetes.pods.values()]
        if kind == "PersistentVolumeClaim":
            return [claim_manifest(claim) for claim in self.kubernetes.claims.values()]
        return []

    # -- writing

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest | None:
        kind, name = manifest["kind"], manifest["metadata"].get("name", "")
        if dry_run:
            return manifest
        if kind == "Event":
            self.events += 1
            return manifest
        self.before_effect(f"create {kind}/{name} {_summary(manifest)}".rstrip())
        if kind != "EtcdBackup":
            if f"{kind}/{name}" in self.kubernetes.objects:
                return None
            self._store(manifest)
            return manifest
        if name in self.kubernetes.backups:
            return None
        created = {"creationTimestamp": moment(self.kubernetes.now).isoformat(), "uid": f"uid-of-{name}"}
        self.kubernetes.backups[name] = {**manifest, "metadata": manifest["metadata"] | created}
        return manifest

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        if manifest.get("spec", {}).get("template", {}).get("metadata", {}).get("labels", {}).get(REJECTED):
            raise KubeError(422, "a label is invalid")
        if dry_run:
            return manifest
        self.before_effect(f"apply {kind}/{name} {_summary(manifest)}")
        if kind == "PersistentVolumeClaim":
            if claim := self.kubernetes.claims.get(name):
                claim.requested = manifest["spec"]["resources"]["requests"]["storage"]
            return manifest
        live, version = self.kubernetes.objects.get(f"{kind}/{name}"), manifest["metadata"].get("resourceVersion")
        if version and (live is None or live["metadata"]["resourceVersion"] != version):
            raise KubeError(409, "the object has been modified")
        self._store(manifest)
        return manifest

    def take_ownership(self, manifest: Manifest) -> Manifest:
        return manifest

    def _store(self, manifest: Manifest) -> None:
        self.invariants.before_apply(self.kubernetes.cluster, manifest, self.status)
        name = f"{manifest['kind']}/{manifest['metadata']['name']}"
        self.kubernetes.objects[name] = self.kubernetes.with_uid(manifest)
        self.invariants.after_apply(manifest, self.status, self.restarting)

    def patch_status(
        self, kind: str, _namespace: str, name: str, status: Manifest, resource_version: str = ""
    ) -> Manifest | None:
        self.before_effect(f"status {status['phase']}: {status['message']}")
        live = self.get(kind, None, name)
        if live is None or (resource_version and live["metadata"]["resourceVersion"] != resource_version):
            return None
        merged = self.status | status
        self.kubernetes.status = {key: value for key, value in merged.items() if value is not None}
        self.kubernetes.statuses += 1
        return live

    def delete(
        self, kind: str, _namespace: str, name: str, same: Mapping[str, str] | None = None, how: str = ""
    ) -> bool:
        self.before_effect(f"delete {kind}/{name} {how}".rstrip())
        live = self.get(kind, None, name)
        if live is None or any(live["metadata"].get(key) != value for key, value in (same or {}).items()):
            return False
        model = self.kubernetes
        match kind:
            case "PersistentVolumeClaim":
                if not model.claims[name].deleting:
                    self.invariants.before_claim_deletion(model.claims[name])
                    model.claims[name].deleting = True
            case "EtcdBackup":
                del model.backups[name]
            case "StatefulSet":
                assert how == "orphan"
                del model.objects[f"StatefulSet/{name}"]
            case _:
                self._delete_pod(model.pods[name], how)
        return True

    def _delete_pod(self, pod: Pod, how: str) -> None:
        if how == "force":
            self.invariants.before_forced_deletion(pod, self.status)
        elif self.status.get("clusterID"):
            self.invariants.before_restart(pod)
        self.kubernetes.delete_pod(pod, force=how == "force")


def resource(cluster: Cluster, status: Mapping[str, Any], statuses: int) -> Manifest:
    """The EtcdCluster as the API server returns it."""
    spec = {
        "size": cluster.size,
        "version": cluster.version,
        "paused": cluster.paused,
        "storage": {"type": cluster.storage.type, "size": cluster.storage.size},
        "tls": {"mode": cluster.tls.mode},
        "options": cluster.options,
        "pod": cluster.pod,
        "upgrade": {
            "allowDowngrade": cluster.upgrade.allow_downgrade,
            "snapshot": {"mode": "Required" if cluster.upgrade.snapshot else "Skip"},
        },
    }
    meta = {
        "namespace": cluster.namespace,
        "name": cluster.name,
        "uid": cluster.uid,
        "generation": cluster.generation,
        "resourceVersion": f"{cluster.generation}.{statuses}",
    }
    return {
        "apiVersion": "etcdops.dev/v1beta1",
        "kind": CLUSTER,
        "metadata": meta,
        "spec": spec,
        "status": dict(status),
    }


def node_manifest(state: str) -> Manifest:
    return {"status": {"conditions": [{"type": "Ready", "status": "True" if state == "up" else "Unknown"}]}}


def volume_manifest(node: str, *, floating: bool) -> Manifest:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    return {"spec": {} if floating else {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}


def pod_manifest(pod: Pod) -> Manifest:
    times = {"startedAt": moment(pod.started_at).isoformat(), "finishedAt": moment(pod.finished_at).isoformat()}
    ended = {"terminated": {"exitCode": pod.exit_code, "message": pod.log_tail, **times}} if pod.exit_code else {}
    if pod.process:
        state: Manifest = {"running": {}}
    elif pod.version in MISSING_IMAGES:
        state = {"waiting": {"reason": "ImagePullBackOff"}}
    else:
        state = {"waiting": {"reason": "CrashLoopBackOff"}} if pod.exit_code else {"waiting": {}}
    container = {"name": "etcd", "restartCount": pod.restarts, "state": state, "lastState": ended}
    return {
        "kind": "Pod",
        "metadata": {
            "namespace": "default",
            "name": pod.name,
            "uid": pod.uid,
            "resourceVersion": _version(pod),
            "creationTimestamp": moment(pod.created).isoformat(),
            "annotations": {TEMPLATE_HASH: pod.template_hash},
            **({} if pod.deleting is None else {"deletionTimestamp": moment(pod.deleting).isoformat()}),
        },
        "spec": {
            "containers": [{"name": "etcd", "image": f"etcd:v{pod.version}"}],
            **({"nodeName": pod.node} if pod.node else {}),
        },
        "status": {
            "podIP": "198.18.0.1" if pod.node else None,
            "containerStatuses": [container] if pod.started or pod.version in MISSING_IMAGES else [],
        },
    }


def _version(pod: Pod) -> str:
    """Another one whenever the status of the pod changes."""
    member = pod.process.data.member if pod.process else ""
    return f"{pod.node} {pod.started} {pod.restarts} {pod.exit_code} {pod.deleting} {member}"


def claim_manifest(claim: Claim) -> Manifest:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "namespace": "default",
            "name": claim.name,
            "uid": claim.uid,
            **({"labels": {UID_LABEL: claim.cluster_uid}} if claim.cluster_uid else {}),
            "annotations": {"volume.kubernetes.io/selected-node": claim.node} if claim.node else {},
            **({"deletionTimestamp": ""} if claim.deleting else {}),
        },
        "spec": {
            "resources": {"requests": {"storage": claim.requested}},
            "storageClassName": "standard",
            "volumeName": f"volume-{claim.name}" if claim.node else "",
        },
        "status": {"capacity": {"storage": claim.size}},
    }


def _summary(manifest: Manifest) -> str:
    if manifest["kind"] == "StatefulSet":
        image = manifest["spec"]["template"]["spec"]["containers"][0]["image"]
        return f"replicas={manifest['spec']['replicas']} {of_image(image)}"
    if manifest["kind"] != "ConfigMap":
        return ""
    return " ".join(f"{name.removesuffix('.yaml')}:{_kind(text)}" for name, text in manifest.get("data", {}).items())


def _kind(text: str) -> str:
    state, initial = read_file(text)
    return state if state == "new" else "sealed" if len(initial) == 1 else f"open({len(initial)})"
