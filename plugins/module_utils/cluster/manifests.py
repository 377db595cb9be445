"""The Kubernetes objects that make a cluster, as pure values."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ..api.cluster import Cluster
from ..etcd.membership import quorum
from ..kube import quantity
from ..kube.manifest import Manifest
from .config import settings

UID_LABEL = "etcdops.dev/cluster-uid"
TEMPLATE_HASH = "etcdops.dev/template-hash"
VERSION = "etcdops.dev/version"  # of the ConfigMap: what new pods run
# Kubernetes copies it to the Service's EndpointSlices; watches.yaml has the operator hear of their changes.
WATCHED = {"etcdops.dev/endpoints": "client"}
USER = 65532  # "nonroot" of the distroless images
# Seconds that a member still serves when its pod is deleted: by then no node sends it new connections, and clients that
# were just told its address have got through.
_PARTING = 1


def labels(cluster: Cluster) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "etcd",
        "app.kubernetes.io/instance": cluster.name,
        "app.kubernetes.io/managed-by": "etcdops",
        "etcdops.dev/cluster": cluster.name,
    }


def owner(cluster: Cluster) -> Manifest:
    return {
        "apiVersion": "etcdops.dev/v1beta1",
        "kind": "EtcdCluster",
        "name": cluster.name,
        "uid": cluster.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def objects(cluster: Cluster, replicas: int, files: dict[str, str], voters: int) -> list[Manifest]:
    """Everything but the Secrets, in the order in which it is to be applied."""
    config_map = _object(cluster, "v1", "ConfigMap", cluster.config_map, {"data": files})
    config_map["metadata"]["annotations"] = {VERSION: cluster.version}
    return [
        _peer_service(cluster),
        _client_service(cluster),
        config_map,
        _disruption_budget(cluster, voters),
        _stateful_set(cluster, replicas),
    ]


def differs(want: Any, have: Any) -> bool:
    """Does an object lack what we want? Fields that we don't set are others' business."""
    if want == have:
        return False
    if isinstance(want, dict):
        return not isinstance(have, dict) or any(differs(value, have.get(key)) for key, value in want.items())
    if isinstance(want, list):
        return (
            not isinstance(have, list)
            or len(want) != len(have)
            or any(differs(one, other) for one, other in zip(want, have, strict=True))
        )
    try:  # the API server writes 1024Mi as 1Gi
        return quantity.parse(str(want)) != quantity.parse(str(have))
    except ValueError:
        return True


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
    # One member alone may be evicted: a budget that never allows it would hold up every drain for ever.
    needed = quorum(voters) if voters > 1 else 0
    spec = {"minAvailable": needed, "selector": {"matchLabels": _selector(cluster)}}
    return _object(cluster, "policy/v1", "PodDisruptionBudget", cluster.name, {"spec": spec})


def _stateful_set(cluster: Cluster, replicas: int) -> Manifest:
    spec: Manifest = {
        "serviceName": cluster.peer_service,
        "replicas": replicas,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},  # we decide who is next
        "selector": {"matchLabels": _selector(cluster)},
        "template": pod_template(cluster),
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
    # The uid tells our data from that of an earlier cluster of the same name.
    return {"metadata": {"name": "data", "labels": {**labels(cluster), UID_LABEL: cluster.uid}}, "spec": spec}


def claim_manifest(cluster: Cluster, pod: str) -> Manifest:
    """The claim that the StatefulSet would make for a pod."""
    template = _claim_template(cluster)
    meta = {"namespace": cluster.namespace, "name": f"data-{pod}", "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": template["spec"]}


def template_hash(stateful_set: Manifest) -> str:
    """Tells whether a pod is what a StatefulSet makes now."""
    found: str = stateful_set["spec"]["template"]["metadata"].get("annotations", {}).get(TEMPLATE_HASH, "")
    return found


def pod_template(cluster: Cluster) -> Manifest:
    pod = cluster.pod
    spec: Manifest = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(cluster)],
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
        "annotations": {**pod.get("annotations", {})},
    }
    # The options too: a member reads its configuration only when it starts.
    recipe = json.dumps([metadata, spec, settings(cluster)], sort_keys=True)
    metadata["annotations"][TEMPLATE_HASH] = hashlib.sha256(recipe.encode()).hexdigest()[:16]
    return {"metadata": metadata, "spec": spec}


def _container(cluster: Cluster) -> Manifest:
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
        "name": "etcd",
        "image": cluster.image,
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
        # Never by quorum: a restart does not bring the others back.
        "livenessProbe": _probe("/livez", period=10, failures=6),
        # A member may have to replay a long log first.
        "startupProbe": _probe("/livez", period=1, failures=600),
        "lifecycle": {"preStop": {"sleep": {"seconds": _PARTING}}},
        # The pod's status has the end of the log when etcd ends: it tells whether data was lost (loss.py).
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": cluster.pod.get("resources", {}),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }


def _etcdctl_environment(cluster: Cluster) -> list[Manifest]:
    """So that `kubectl exec NAME-0 -- etcdctl …` just works."""
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
        volumes += [
            {"name": f"{role}-tls", "secret": {"secretName": cluster.secret(role), "defaultMode": 0o440}}
            for role in ("server", "peer", "client")
        ]
    if cluster.storage.type == "Memory":
        volumes.append({"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": cluster.storage.size}})
    return volumes


def _spread(cluster: Cluster) -> Manifest:
    """Over nodes and zones where that can be had."""

    def apart(key: str, weight: int) -> Manifest:
        term = {"topologyKey": key, "labelSelector": {"matchLabels": _selector(cluster)}}
        return {"weight": weight, "podAffinityTerm": term}

    preferred = [apart("kubernetes.io/hostname", 100), apart("topology.kubernetes.io/zone", 50)]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
