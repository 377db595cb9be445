"""The Kubernetes objects that make a cluster, as pure values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, fields

from ..api.cluster import Cluster
from ..etcd.membership import quorum
from ..etcd.versions import of_image
from ..kube import security
from ..kube.manifest import Manifest
from ..kube.ownership import owner_reference
from .member_config import settings

UID_LABEL = "etcdops.dev/cluster-uid"
TEMPLATE_HASH = "etcdops.dev/template-hash"
VERSION = "etcdops.dev/version"  # on the ConfigMap, and on pods with an image by digest: the version that they run
# Kubernetes copies it to the Service's EndpointSlices, which watches.yaml selects by it.
WATCHED = {"etcdops.dev/endpoints": "client"}
# Seconds between a pod's deletion and the signal to etcd: meanwhile the nodes stop sending new connections to it.
_PRE_STOP = 1
_ETCD = "etcd"  # the container's name


def labels(cluster: Cluster) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "etcd",
        "app.kubernetes.io/instance": cluster.name,
        "app.kubernetes.io/managed-by": "etcdops",
        "etcdops.dev/cluster": cluster.name,
    }


def owner(cluster: Cluster) -> Manifest:
    return owner_reference("EtcdCluster", cluster.name, cluster.uid)


@dataclass(frozen=True)
class Objects:
    """Everything that makes a cluster but the Secrets, in the order in which it is applied."""

    peer_service: Manifest
    client_service: Manifest
    config_map: Manifest
    disruption_budget: Manifest
    stateful_set: Manifest

    def __iter__(self) -> Iterator[Manifest]:
        return (getattr(self, each.name) for each in fields(self))

    @property
    def template_hash(self) -> str:
        """The hash of the pods that the StatefulSet makes."""
        return template_hash(self.stateful_set)


def objects(cluster: Cluster, version: str, replicas: int, files: dict[str, str], voters: int) -> Objects:
    """The desired objects, with pods that run this version."""
    config_map = _object(cluster, "v1", "ConfigMap", cluster.config_map, {"data": files})
    config_map["metadata"]["annotations"] = {VERSION: version}
    return Objects(
        _peer_service(cluster),
        _client_service(cluster),
        config_map,
        _disruption_budget(cluster, voters),
        _stateful_set(cluster, version, replicas),
    )


def _object(cluster: Cluster, api_version: str, kind: str, name: str, content: Manifest) -> Manifest:
    metadata = {
        "namespace": cluster.namespace,
        "name": name,
        "labels": labels(cluster),
        "ownerReferences": [owner(cluster)],
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def _selector(cluster: Cluster) -> dict[str, str]:
    return {"etcdops.dev/cluster": cluster.name, "app.kubernetes.io/name": "etcd"}


def _peer_service(cluster: Cluster) -> Manifest:
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,  # members find each other before they are ready
        "selector": _selector(cluster),
        "ports": [_port("client", 2379), _port("peer", 2380)],
    }
    return _object(cluster, "v1", "Service", cluster.peer_service, {"spec": spec})


def _client_service(cluster: Cluster) -> Manifest:
    spec = {"selector": _selector(cluster), "ports": [_port("client", 2379)]}
    service = _object(cluster, "v1", "Service", cluster.client_service, {"spec": spec})
    service["metadata"]["labels"] |= WATCHED
    return service


def _port(name: str, number: int) -> Manifest:
    return {"name": name, "port": number, "targetPort": name, "protocol": "TCP"}


def _disruption_budget(cluster: Cluster, voters: int) -> Manifest:
    # One of two members, and a single one, may be evicted: a budget that never allows it would block every drain.
    needed = quorum(voters) if voters > 2 else max(0, voters - 1)
    spec = {"minAvailable": needed, "selector": {"matchLabels": _selector(cluster)}}
    return _object(cluster, "policy/v1", "PodDisruptionBudget", cluster.name, {"spec": spec})


def _stateful_set(cluster: Cluster, version: str, replicas: int) -> Manifest:
    spec: Manifest = {
        "serviceName": cluster.peer_service,
        "replicas": replicas,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},  # the planner decides which member restarts
        "selector": {"matchLabels": _selector(cluster)},
        "template": pod_template(cluster, version),
    }
    if cluster.storage.type == "Persistent":
        spec["volumeClaimTemplates"] = [_claim_template(cluster)]
    return _object(cluster, "apps/v1", "StatefulSet", cluster.name, {"spec": spec})


def _claim_template(cluster: Cluster) -> Manifest:
    spec: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": cluster.storage.size}},
    }
    if cluster.storage.class_name:
        spec["storageClassName"] = cluster.storage.class_name
    # The uid distinguishes this cluster's data from that of an earlier cluster of the same name.
    return {"metadata": {"name": "data", "labels": {**labels(cluster), UID_LABEL: cluster.uid}}, "spec": spec}


def claim_manifest(cluster: Cluster, pod: str) -> Manifest:
    """The PVC that the StatefulSet would make for a pod."""
    template = _claim_template(cluster)
    meta = {"namespace": cluster.namespace, "name": f"data-{pod}", "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": template["spec"]}


def template_hash(stateful_set: Manifest) -> str:
    """The hash of the pods that a StatefulSet makes now: a pod with another one is outdated."""
    found: str = stateful_set["spec"]["template"]["metadata"].get("annotations", {}).get(TEMPLATE_HASH, "")
    return found


def image_of(pod: Manifest) -> str:
    """The image of etcd: another program may have put containers of its own before it. "" when there is none."""
    containers = pod["spec"].get("containers", [])
    return next((str(each.get("image", "")) for each in containers if each.get("name") == _ETCD), "")


def version_of(pod: Manifest) -> str:
    """The etcd version that a pod or a pod template runs; "" when nothing tells."""
    noted: str = (pod["metadata"].get("annotations") or {}).get(VERSION, "")
    return noted or of_image(image_of(pod))


def pod_template(cluster: Cluster, version: str) -> Manifest:
    pod = cluster.pod
    spec: Manifest = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": security.pod_context(),
        "containers": [_container(cluster, version)],
        "volumes": _volumes(cluster),
        "affinity": {**_spread(cluster), **pod.get("affinity", {})},
        **{
            name: pod[name]
            for name in (
                "nodeSelector",
                "tolerations",
                "topologySpreadConstraints",
                "priorityClassName",
                "imagePullSecrets",
            )
            if name in pod
        },
    }
    metadata: Manifest = {
        "labels": {**pod.get("labels", {}), **labels(cluster)},
        # A digest does not tell the version, as a tag does.
        "annotations": {**pod.get("annotations", {}), **({VERSION: version} if cluster.spec_image else {})},
    }
    # The options too: a member reads its configuration only when it starts.
    recipe = json.dumps([metadata, spec, settings(cluster, version)], sort_keys=True)
    metadata["annotations"][TEMPLATE_HASH] = hashlib.sha256(recipe.encode()).hexdigest()[:16]
    return {"metadata": metadata, "spec": spec}


def _container(cluster: Cluster, version: str) -> Manifest:
    mounts = [
        {"name": "data", "mountPath": "/var/lib/etcd"},
        {"name": "config", "mountPath": "/etc/etcd/etcd.yaml", "subPathExpr": "$(POD_NAME).yaml", "readOnly": True},
    ]
    if cluster.tls.enabled:
        mounts += [
            {"name": f"{role}-tls", "mountPath": f"/etc/etcd/tls/{role}", "readOnly": True}
            for role in ("server", "peer", "client")
        ]
    return {
        "name": _ETCD,
        "image": cluster.image(version),
        "imagePullPolicy": cluster.pod.get("imagePullPolicy", "IfNotPresent"),
        "command": ["/usr/local/bin/etcd"],
        "args": ["--config-file=/etc/etcd/etcd.yaml"],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            *_etcdctl_environment(cluster),
        ],
        "ports": [
            {"name": "client", "containerPort": 2379, "protocol": "TCP"},
            {"name": "peer", "containerPort": 2380, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 2381, "protocol": "TCP"},
        ],
        "readinessProbe": _probe("/readyz", period=1, failures=3),
        # Not by quorum: restarting this member does not bring the others back.
        "livenessProbe": _probe("/livez", period=10, failures=6),
        # A member may have to replay a long log first.
        "startupProbe": _probe("/livez", period=1, failures=600),
        "lifecycle": {"preStop": {"sleep": {"seconds": _PRE_STOP}}},
        # Puts the end of etcd's log into the pod's status when etcd ends: evidence for loss.py.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": cluster.pod.get("resources", {}),
        "securityContext": security.container_context(),
        "volumeMounts": mounts,
    }


def _etcdctl_environment(cluster: Cluster) -> list[Manifest]:
    """Makes `kubectl exec NAME-0 -- etcdctl …` work without flags."""
    if not cluster.tls.enabled:
        return []
    values = {
        "ETCDCTL_ENDPOINTS": "https://localhost:2379",
        "ETCDCTL_CACERT": "/etc/etcd/tls/client/ca.crt",
        "ETCDCTL_CERT": "/etc/etcd/tls/client/tls.crt",
        "ETCDCTL_KEY": "/etc/etcd/tls/client/tls.key",
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def _probe(path: str, *, period: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "metrics", "scheme": "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _volumes(cluster: Cluster) -> list[Manifest]:
    volumes: list[Manifest] = [{"name": "config", "configMap": {"name": cluster.config_map}}]
    if cluster.tls.enabled:
        # Whoever names a Secret must not see what else it has. The operator's own have nothing else.
        keys = [{"key": key, "path": key} for key in security.TLS_KEYS] if cluster.tls.mode == "Provided" else []
        only = {"items": keys} if keys else {}
        volumes += [
            {"name": f"{role}-tls", "secret": {"secretName": cluster.secret(role), "defaultMode": 0o440, **only}}
            for role in ("server", "peer", "client")
        ]
    if cluster.storage.type == "Memory":
        volumes.append({"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": cluster.storage.size}})
    return volumes


def _spread(cluster: Cluster) -> Manifest:
    """Prefer different nodes and zones."""

    def apart(key: str, weight: int) -> Manifest:
        term = {"topologyKey": key, "labelSelector": {"matchLabels": _selector(cluster)}}
        return {"weight": weight, "podAffinityTerm": term}

    preferred = [apart("kubernetes.io/hostname", 100), apart("topology.kubernetes.io/zone", 50)]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
