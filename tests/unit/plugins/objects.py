"""Objects in a real API server, as users, controllers and kubelets would leave them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.ownership import API_VERSION

_TIME = "2026-11-16T12:00:00Z"


@dataclass(frozen=True)
class Namespace:
    kube: Kube
    name: str

    def get(self, kind: str, name: str) -> Manifest:
        found = self.kube.get(kind, self.name, name)
        assert found is not None, f"{kind} {name} does not exist"
        return found

    def create(self, manifest: Manifest, status: Manifest | None = None) -> Manifest:
        """Create an object here, and its status as a controller would."""
        placed = {**manifest, "metadata": {**manifest["metadata"], "namespace": self.name}}
        assert self.kube.create(placed) is not None, f"{manifest['metadata']['name']} exists already"
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        if status is not None:
            self.kube.patch_status(kind, self.name, name, status)
        return self.get(kind, name)

    def resource(self, kind: str, name: str, spec: Manifest, status: Manifest | None = None, **meta: Any) -> Manifest:
        """A custom resource of ours."""
        manifest = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}
        return self.create(manifest, status)

    def cluster(self, name: str, status: Manifest | None = None, **spec: Any) -> Manifest:
        return self.resource("EtcdCluster", name, {"size": 3, "version": "3.6.16", **spec}, status)

    def config_map(self, name: str, **meta: Any) -> Manifest:
        return self.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}})

    def secret(self, name: str) -> Manifest:
        return self.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})

    def claim(self, name: str, **meta: Any) -> Manifest:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        return self.create(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, **meta}, "spec": spec}
        )

    def pod(self, name: str, labels: dict[str, str], node: str = "", status: Manifest | None = None) -> Manifest:
        spec: Manifest = {"containers": [{"name": "operator", "image": "operator:1"}]}
        spec |= {"nodeName": node} if node else {}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
        return self.create(manifest, status)

    def pod_of(self, job: Manifest, status: Manifest) -> Manifest:
        """A pod of a Job, as the Job controller creates it."""
        name = job["metadata"]["name"]
        template = job["spec"]["template"]
        labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": name}
        meta = {"name": f"{name}-x1y2z", "labels": labels}
        return self.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}, status)

    def complete(self, job: str) -> None:
        conditions = [
            {"type": each, "status": "True", "lastTransitionTime": _TIME} for each in ("SuccessCriteriaMet", "Complete")
        ]
        status = {"startTime": _TIME, "completionTime": _TIME, "succeeded": 1, "conditions": conditions}
        self.kube.patch_status("Job", self.name, job, status)

    def events(self, name: str) -> list[Manifest]:
        """The events about an object, oldest first."""
        found = self.kube.list("Event", self.name, "")
        return sorted(
            (event for event in found if event["involvedObject"]["name"] == name),
            key=lambda event: str(event["metadata"]["name"]),
        )

    def end(self) -> None:
        """Delete the namespace. No controller finishes this, so it stays as one that is being deleted."""
        self.kube._call("DELETE", f"api/v1/namespaces/{self.name}")
