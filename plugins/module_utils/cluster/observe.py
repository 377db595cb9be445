"""Observing one EtcdCluster: everything that a plan needs, from the API server and from every member, concurrently."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from ..api import images
from ..api.cluster import Cluster
from ..etcd.errors import EtcdError
from ..etcd.view import ClusterView, look
from ..kube import quantity
from ..kube.client import Asked, Kube, named
from ..kube.errors import KubeError
from ..kube.manifest import Manifest, display
from . import certificates, deletion, foreign_objects, members
from .loss import is_cut_off, reason_in
from .manifests import TEMPLATE_HASH, UID_LABEL, version_of
from .memory import Memory, recall
from .observation import Claim, NodeState, Observation, Pod
from .situation import Situation, situation_of

OPERATOR = "ETCDOPS_OPERATOR"  # in the environment
_CLAIM = "PersistentVolumeClaim"
_HOSTNAME = "kubernetes.io/hostname"
_TIMEOUT, _DEADLINE = 1.5, 3.0  # seconds for one question to a member, and for all answers
_CRASH_LOOP = timedelta(minutes=1)  # a container that ran for longer did not end because of what it started with
_STACK = 60, 64 << 10  # lines and bytes of a log that hold a panic and its reason
_OVERDUE = timedelta(seconds=30)  # a pod that is being deleted should be gone by then

T = TypeVar("T")
U = TypeVar("U")


def observe(kube: Kube, cluster: Cluster, status: Mapping[str, Any]) -> Situation:
    """The situation now. Members are asked while the objects are read."""
    now, memory = clock(), recall(status)
    operator = cluster.secret("operator") if cluster.tls.enabled else ""
    first = [Asked("Pod", cluster.namespace, selector=cluster.selector)]
    first += [Asked("Secret", cluster.namespace, operator)] if operator else []
    pods, *secret = kube.read(first)
    found_first = secret[0] if secret else []
    foreign = foreign_objects.foreign_among(cluster, found_first)
    credentials = found_first[0] if found_first and not foreign else None
    view, found = concurrently(
        lambda: _ask_members(cluster, pods, credentials, memory.cluster_id),
        lambda: list(kube.read(_asked(cluster, memory, operator))),
    )
    claims, others = found[0], [each for answer in found[1:] for each in answer]
    foreign += foreign_objects.foreign_among(cluster, others)
    taken = {str(each) for each in foreign}
    others = [each for each in others if display(each) not in taken]
    claims += _unlisted_claims(kube, cluster, claims, others)
    secrets = {each["metadata"]["name"]: each for each in others if each["kind"] == "Secret"}
    secrets |= {operator: credentials} if credentials else {}
    unhealthy = [pod for pod in pods if not _is_healthy(cluster, pod, view)]
    nodes = _nodes(kube, unhealthy)
    stranded = _stranded(kube, unhealthy, claims, nodes)
    needed = {name: secrets.get(name) for name in certificates.secret_names(cluster)}
    observed = Observation(
        now=now,
        memory=memory,
        operator=os.environ.get(OPERATOR, ""),
        objects={f"{each['kind']}/{each['metadata']['name']}": each for each in others if each["kind"] != "Secret"},
        pods=tuple(_with_reason(kube, cluster, pod_of(pod, nodes, now)) for pod in pods),
        foreign=foreign,
        claims=tuple(claim_of(claim, stranded) for claim in claims),
        view=view,
        certificates=certificates.check(
            cluster, needed, now, foreign={each.name for each in foreign if each.kind == "Secret"}
        ),
        storage_class_missing=_storage_class_missing(kube, cluster, claims),
        unexpandable=_unexpandable(kube, cluster, claims),
        allowed_repositories=images.allowed(),
    )
    return situation_of(cluster, observed)


def clock() -> datetime:
    return datetime.now(UTC)


def concurrently(one: Callable[[], T], other: Callable[[], U]) -> tuple[T, U]:
    with ThreadPoolExecutor(1) as aside:
        future = aside.submit(one)
        second = other()
        return future.result(), second


def _asked(cluster: Cluster, memory: Memory, operator: str) -> list[Asked]:
    """What is read of Kubernetes, the PVCs first."""
    named = [
        ("Service", cluster.peer_service),
        ("Service", cluster.client_service),
        ("ConfigMap", cluster.config_map),
        ("PodDisruptionBudget", cluster.name),
        ("StatefulSet", cluster.name),
        *(("Secret", name) for name in certificates.secret_names(cluster) if name != operator),
        *(("EtcdBackup", name) for name in _snapshots(cluster, memory)),
    ]
    claims = Asked(_CLAIM, cluster.namespace, selector=cluster.selector)
    return [claims, *(Asked(kind, cluster.namespace, name) for kind, name in named)]


def _unlisted_claims(kube: Kube, cluster: Cluster, claims: list[Manifest], others: list[Manifest]) -> list[Manifest]:
    """PVCs without our labels that have the name of a member's: its pod would use them. A settled cluster lists all."""
    if cluster.storage.type != "Persistent" or cluster.deleting:
        return []
    replicas = max((each["spec"]["replicas"] for each in others if each["kind"] == "StatefulSet"), default=0)
    pods = {cluster.pod_name(number) for number in range(max(cluster.size, replicas))}
    pods |= {
        file.removesuffix(".yaml") for each in others if each["kind"] == "ConfigMap" for file in each.get("data", {})
    }
    missing = {f"data-{pod}" for pod in pods} - {claim["metadata"]["name"] for claim in claims}
    return named(kube, _CLAIM, cluster.namespace, sorted(missing)) if missing else []


def _snapshots(cluster: Cluster, memory: Memory) -> list[str]:
    """The EtcdBackups that matter: the one before an upgrade, and the final one."""
    if cluster.deleting:
        return [deletion.final_snapshot_name(cluster)]
    upgrade = memory.upgrade
    if upgrade is None or not upgrade.snapshot or (upgrade.completed and not cluster.upgrade.keep_for):
        return []
    return [upgrade.snapshot]


def _ask_members(
    cluster: Cluster, pods: list[Manifest], credentials: Manifest | None, cluster_id: str | None
) -> ClusterView:
    if cluster.tls.enabled and credentials is None:
        return ClusterView()
    connection = members.connect(cluster, pods, credentials, timeout=_TIMEOUT)
    try:
        urls = list(connection.endpoints)
        known = int(cluster_id, 16) if cluster_id else None
        return look(connection, urls, discover=False, cluster_id=known, deadline=_DEADLINE) if urls else ClusterView()
    except EtcdError as error:  # before the first quorum: a volume has data of another cluster
        return ClusterView(answers=dict.fromkeys(connection.endpoints, error))
    finally:
        connection.close()


def _is_healthy(cluster: Cluster, pod: Manifest, view: ClusterView) -> bool:
    answer = view.answer(cluster.client_url(pod["metadata"]["name"]))
    return answer is not None and answer.healthy


def _nodes(kube: Kube, unhealthy: list[Manifest]) -> dict[str, NodeState]:
    """State of the nodes that host unhealthy members."""
    names = {pod["spec"].get("nodeName", "") for pod in unhealthy}
    return {name: _node_state(kube, name) for name in names if name}


def _stranded(
    kube: Kube, unhealthy: list[Manifest], claims: list[Manifest], nodes: Mapping[str, NodeState]
) -> frozenset[str]:
    """The PVCs of unhealthy members without a node whose volumes can't be used on any other node."""
    homeless = {
        f"data-{pod['metadata']['name']}"
        for pod in unhealthy
        if nodes.get(pod["spec"].get("nodeName", ""), NodeState.GONE) is NodeState.GONE
    }
    bound = {claim["metadata"]["name"]: claim.get("spec", {}).get("volumeName", "") for claim in claims}
    try:
        return frozenset(name for name in homeless if bound.get(name) and _is_stranded(kube, bound[name]))
    except KubeError as error:
        if error.status == 403:  # installed for one namespace: nothing is known
            return frozenset()
        raise


def _is_stranded(kube: Kube, volume: str) -> bool:
    hosts = _hosts(kube.get("PersistentVolume", None, volume) or {})
    return bool(hosts) and not kube.list("Node", None, f"{_HOSTNAME} in ({','.join(sorted(hosts))})")


def _hosts(volume: Manifest) -> frozenset[str]:
    """The host names of the only nodes on which a volume can be used; none if it can be used elsewhere.

    The annotation selected-node of a PVC tells where a volume was created, not where it is.
    """
    required = volume.get("spec", {}).get("nodeAffinity", {}).get("required", {})
    terms = [_hosts_of_term(term) for term in required.get("nodeSelectorTerms", [])]
    return frozenset().union(*terms) if all(terms) else frozenset()


def _hosts_of_term(term: Manifest) -> frozenset[str]:
    named = [each for each in term.get("matchExpressions", []) if each["key"] == _HOSTNAME and each["operator"] == "In"]
    return frozenset(named[0]["values"]) if named else frozenset()


def _node_state(kube: Kube, name: str) -> NodeState:
    try:
        node = kube.get("Node", None, name)
    except KubeError as error:
        if error.status == 403:  # installed for one namespace
            return NodeState.UNKNOWN
        raise
    if node is None:
        return NodeState.GONE
    ready = next((c["status"] for c in node["status"].get("conditions", []) if c["type"] == "Ready"), "Unknown")
    return NodeState.UNREACHABLE if ready == "Unknown" else NodeState.READY


def pod_of(pod: Manifest, nodes: Mapping[str, NodeState], now: datetime) -> Pod:
    meta, status = pod["metadata"], pod.get("status", {})
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    container: Manifest = next((c for c in status.get("containerStatuses", []) if c["name"] == "etcd"), {})
    ended = container.get("state", {}).get("terminated") or container.get("lastState", {}).get("terminated") or {}
    deletion_time = meta.get("deletionTimestamp")
    return Pod(
        name=meta["name"],
        uid=meta["uid"],
        resource_version=meta.get("resourceVersion", ""),
        address=status.get("podIP"),
        ready=conditions.get("Ready", {}).get("status") == "True",
        deleting=deletion_time is not None,
        overdue=deletion_time is not None and now - datetime.fromisoformat(deletion_time) > _OVERDUE,
        created=datetime.fromisoformat(meta["creationTimestamp"]),
        template_hash=(meta.get("annotations") or {}).get(TEMPLATE_HASH, ""),
        problem=_problem(status, conditions),
        version=version_of(pod),
        scheduled=bool(pod["spec"].get("nodeName")),
        node=nodes.get(pod["spec"].get("nodeName", ""), NodeState.UNKNOWN),
        started=bool(ended) or bool(container.get("restartCount")) or "running" in container.get("state", {}),
        crashed=bool(ended) and "running" not in container.get("state", {}),
        restarts=container.get("restartCount", 0) if _ended_soon(ended) else 0,
        log_tail=ended.get("message", "") if ended.get("exitCode") else "",
        out_of_memory=ended.get("reason") == "OOMKilled",
    )


def _with_reason(kube: Kube, cluster: Cluster, pod: Pod) -> Pod:
    """With the reason why etcd ended, if the stack of its panic has displaced it."""
    if not pod.crashed or not is_cut_off(pod.log_tail):
        return pod
    log = kube.log(cluster.namespace, pod.name, "etcd", *_STACK) or ""
    return replace(pod, log_tail=reason_in(log) or pod.log_tail)


def _ended_soon(ended: Manifest) -> bool:
    """Whether etcd ended soon after it had started. Restarts are counted for a pod's whole life, reboots too."""
    if not ended.get("startedAt") or not ended.get("finishedAt"):
        return False
    ran = datetime.fromisoformat(ended["finishedAt"]) - datetime.fromisoformat(ended["startedAt"])
    return ran < _CRASH_LOOP


def _problem(status: Manifest, conditions: Mapping[str, Manifest]) -> str:
    """Why a pod does not run, in the words of the scheduler or the kubelet."""
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return f"not scheduled: {scheduled.get('message', 'no reason given')}"
    for container in status.get("containerStatuses", []):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return f"{waiting['reason']}: {waiting.get('message', '')}".strip(" :")
    return status.get("message", "") if status.get("phase") in ("Failed", "Succeeded") else ""


def claim_of(claim: Manifest, stranded: Collection[str]) -> Claim:
    meta, requests = claim["metadata"], claim.get("spec", {}).get("resources", {}).get("requests", {})
    return Claim(
        name=meta["name"],
        uid=meta.get("uid", ""),
        cluster_uid=_cluster_uid(claim),
        deleting="deletionTimestamp" in meta,
        stranded=meta["name"] in stranded,
        requested=requests.get("storage", ""),
        capacity=claim.get("status", {}).get("capacity", {}).get("storage", ""),
    )


def _cluster_uid(claim: Manifest) -> str:
    return str((claim["metadata"].get("labels") or {}).get(UID_LABEL, ""))


def _unexpandable(kube: Kube, cluster: Cluster, claims: Iterable[Manifest]) -> tuple[str, ...]:
    """Only looked up when PVCs should grow; without permission to look, nothing is known."""
    small = [claim for claim in claims if _is_small(cluster, claim)]
    names = sorted({claim["spec"].get("storageClassName", "") for claim in small})
    try:
        classes = {name: kube.get("StorageClass", None, name) if name else None for name in names}
    except KubeError as error:
        if error.status == 403:
            return ()
        raise
    return tuple(name or "(none)" for name, found in classes.items() if not (found or {}).get("allowVolumeExpansion"))


def _is_small(cluster: Cluster, claim: Manifest) -> bool:
    own = _cluster_uid(claim) == cluster.uid and cluster.storage.type == "Persistent"
    requested = claim.get("spec", {}).get("resources", {}).get("requests", {}).get("storage", "")
    return own and quantity.is_smaller(requested, cluster.storage.size)


def _storage_class_missing(kube: Kube, cluster: Cluster, claims: list[Manifest]) -> bool:
    """Only looked up before there are PVCs; without permission to look, it is not refused."""
    if claims or cluster.storage.type != "Persistent" or not cluster.storage.class_name:
        return False
    try:
        return kube.get("StorageClass", None, cluster.storage.class_name) is None
    except KubeError as error:
        if error.status == 403:
            return False
        raise
