"""Looking: one reading of everything that a plan needs, from the API server and from every member."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

from ..api.cluster import Cluster
from ..etcd.client import Client
from ..etcd.endpoint import Endpoint, Tls
from ..etcd.errors import EtcdError
from ..etcd.fanout import ask_all
from ..etcd.types import MemberList
from ..etcd.versions import of_image
from ..kube.client import Asked, Kube, KubeError
from ..kube.manifest import Manifest, Manifests
from . import certificates as secrets
from .manifests import TEMPLATE_HASH, UID_LABEL
from .observation import Answer, Claim, Join, Node, Observed, Pod, Upgrade
from .volumes import is_small

_CLAIM = "PersistentVolumeClaim"
_TIMEOUT = 1.5  # seconds for one question to a member
_CRASH_LOOP = timedelta(minutes=1)  # who has run for longer did not end because of what it started with
_OVERDUE = timedelta(seconds=30)  # a pod that is being deleted should be gone by then


def observe(kube: Kube, cluster: Cluster, status: Mapping[str, Any]) -> Observed:
    """A picture of the cluster now. Members are asked while the objects are read."""
    now, operator = datetime.now(UTC), cluster.secret("operator")
    reading = kube.read(_asked(cluster))
    found = next(reading)
    credentials = next(iter(next(reading)), None) if cluster.tls.enabled else None
    with ThreadPoolExecutor(1) as aside:
        asking = aside.submit(_ask, cluster, found, credentials, status.get("clusterID"))
        objects, claims, certificates = _read(reading)
        upgrade = _upgrade(status.get("upgrade"))
        objects |= _snapshot(kube, cluster, upgrade)
        answers, members = asking.result()
    nodes = _nodes(kube, found, claims, answers)
    certificates |= {operator: credentials} if credentials else {}
    tls_secrets = {name: certificates.get(name) for name in secrets.secret_names(cluster)}
    return Observed(
        now=now,
        cluster_id=status.get("clusterID"),
        phase=status.get("phase", ""),
        unwell_since=_unwell_since(status),
        degraded_since=_degraded_since(status),
        join=_join(status.get("join")),
        upgrade=upgrade,
        objects=objects,
        pods=tuple(_pod(pod, nodes, now) for pod in found),
        claims=tuple(_claim(claim, nodes) for claim in claims),
        answers=answers,
        members=members,
        certificates=secrets.check(cluster, tls_secrets, secrets.cluster_domain(), now),
        storage_class_missing=_storage_class_missing(kube, cluster, claims),
        unexpandable=_unexpandable(kube, cluster, claims),
    )


def endpoints(cluster: Cluster, pods: Iterable[Manifest]) -> dict[str, Endpoint]:
    """Where each pod's member is. Its address is dialled: a name that is new may not be in the DNS yet."""
    addresses = {pod["metadata"]["name"]: pod.get("status", {}).get("podIP") for pod in pods}
    return {name: Endpoint(cluster.client_url(name), address) for name, address in addresses.items() if address}


def client_tls(secret: Manifest) -> Tls:
    """A Secret's certificates. ssl reads from files only; these are in memory: quicker, and the key is on no disk."""
    with ExitStack() as open_files:
        paths = []
        for name in ("ca.crt", "tls.crt", "tls.key"):
            file = os.memfd_create(name)
            open_files.callback(os.close, file)
            os.write(file, base64.b64decode(secret["data"][name]))
            paths.append(f"/proc/self/fd/{file}")
        tls = Tls(*paths)
        _ = tls.context  # reads the files while they are there
    return tls


def _asked(cluster: Cluster) -> list[Asked]:
    """What is read of Kubernetes, beginning with what the members are asked with."""
    pods, claims = (Asked(kind, cluster.namespace, selector=cluster.selector) for kind in ("Pod", _CLAIM))
    objects = (
        ("Service", cluster.peer_service),
        ("Service", cluster.client_service),
        ("ConfigMap", cluster.config_map),
        ("PodDisruptionBudget", cluster.name),
        ("StatefulSet", cluster.name),
    )
    operator = [("Secret", cluster.secret("operator"))] if cluster.tls.enabled else []
    own = [("Secret", name) for name in secrets.secret_names(cluster) if ("Secret", name) not in operator]
    first, others = (
        [Asked(kind, cluster.namespace, name) for kind, name in each] for each in (operator, [*objects, *own])
    )
    return [pods, *first, claims, *others]


def _read(reading: Iterator[Manifests]) -> tuple[dict[str, Manifest], list[Manifest], dict[str, Manifest]]:
    """The objects that make the cluster, its claims, and its Secrets but the operator's own."""
    claims = next(reading)
    found = [each for answer in reading for each in answer]
    objects = {f"{each['kind']}/{each['metadata']['name']}": each for each in found if each["kind"] != "Secret"}
    return objects, claims, {each["metadata"]["name"]: each for each in found if each["kind"] == "Secret"}


def _ask(
    cluster: Cluster, pods: list[Manifest], credentials: Manifest | None, cluster_id: str | None
) -> tuple[dict[str, Answer], MemberList | None]:
    """Ask every member how it is, side by side."""
    asked = endpoints(cluster, pods)
    if not asked or (cluster.tls.enabled and credentials is None):
        return {}, None
    tls = client_tls(credentials) if cluster.tls.enabled and credentials else None
    clients = [Client(endpoint, tls, timeout=_TIMEOUT) for endpoint in asked.values()]
    said = ask_all(clients, _question, deadline=3.0)
    answers, lists = {}, []
    for pod, reply in zip(asked, said, strict=True):
        if isinstance(reply, EtcdError):
            answers[pod] = Answer(None, healthy=False, error=str(reply))
            continue
        answer, members = reply
        if answer.status and cluster_id and f"{answer.status.cluster_id:x}" != cluster_id:
            other = f"it is of another cluster, {answer.status.cluster_id:x}"
            answer, members = Answer(None, healthy=False, error=other), None
        answers[pod] = answer
        lists += [members] if members else []
    return answers, lists[0] if lists else None


def _question(client: Client) -> tuple[Answer, MemberList | None]:
    with client:
        status = client.status()
        if status.is_learner:  # it serves no linearizable read, and tells no list
            return Answer(status, healthy=bool(status.leader_id), error="" if status.leader_id else "no leader"), None
        try:
            client.health()
            return Answer(status, healthy=True, cluster_version=client.cluster_version()), client.members()
        except EtcdError as error:
            return Answer(status, healthy=False, error=str(error)), None


def _nodes(kube: Kube, pods: list[Manifest], claims: list[Manifest], answers: Mapping[str, Answer]) -> dict[str, Node]:
    """How the nodes are that members are tied to which don't serve."""
    silent = [pod for pod in pods if not (answer := answers.get(pod["metadata"]["name"])) or not answer.healthy]
    homeless = {f"data-{pod['metadata']['name']}" for pod in silent if not pod["spec"].get("nodeName")}
    names = {pod["spec"].get("nodeName", "") for pod in silent}
    names |= {_home(claim) for claim in claims if claim["metadata"]["name"] in homeless}
    return {name: _node(kube, name) for name in names if name}


def _node(kube: Kube, name: str) -> Node:
    try:
        node = kube.get("Node", None, name)
    except KubeError as error:
        if error.status == 403:  # installed for one namespace
            return Node.UNKNOWN
        raise
    if node is None:
        return Node.GONE
    ready = next((c["status"] for c in node["status"].get("conditions", []) if c["type"] == "Ready"), "Unknown")
    return Node.UNREACHABLE if ready == "Unknown" else Node.WELL


def _home(claim: Manifest) -> str:
    """The node that the scheduler chose for a volume."""
    return str((claim["metadata"].get("annotations") or {}).get("volume.kubernetes.io/selected-node", ""))


def _pod(pod: Manifest, nodes: Mapping[str, Node], now: datetime) -> Pod:
    meta, status = pod["metadata"], pod.get("status", {})
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    container: Manifest = next((c for c in status.get("containerStatuses", []) if c["name"] == "etcd"), {})
    ended = container.get("state", {}).get("terminated") or container.get("lastState", {}).get("terminated") or {}
    deletion = meta.get("deletionTimestamp")
    return Pod(
        name=meta["name"],
        uid=meta["uid"],
        address=status.get("podIP"),
        ready=conditions.get("Ready", {}).get("status") == "True",
        deleting=deletion is not None,
        overdue=deletion is not None and now - datetime.fromisoformat(deletion) > _OVERDUE,
        created=datetime.fromisoformat(meta["creationTimestamp"]),
        template_hash=(meta.get("annotations") or {}).get(TEMPLATE_HASH, ""),
        problem=_problem(status, conditions),
        version=of_image(next((c.get("image", "") for c in pod["spec"].get("containers", [])), "")),
        scheduled=bool(pod["spec"].get("nodeName")),
        node=nodes.get(pod["spec"].get("nodeName", ""), Node.UNKNOWN),
        ran=bool(ended) or bool(container.get("restartCount")) or "running" in container.get("state", {}),
        crashed=bool(ended) and "running" not in container.get("state", {}),
        restarts=container.get("restartCount", 0) if _ended_soon(ended) else 0,
        last_words=ended.get("message", "") if ended.get("exitCode") else "",
        out_of_memory=ended.get("reason") == "OOMKilled",
    )


def _ended_soon(ended: Manifest) -> bool:
    """Did etcd end as soon as it had started? Restarts are counted for a pod's whole life, reboots of its node too."""
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


def _claim(claim: Manifest, nodes: Mapping[str, Node]) -> Claim:
    meta, requests = claim["metadata"], claim.get("spec", {}).get("resources", {}).get("requests", {})
    return Claim(
        name=meta["name"],
        cluster_uid=meta["labels"].get(UID_LABEL, ""),
        deleting="deletionTimestamp" in meta,
        node=nodes.get(_home(claim), Node.UNKNOWN),
        wanted=requests.get("storage", ""),
        size=claim.get("status", {}).get("capacity", {}).get("storage", ""),
    )


def _unwell_since(status: Mapping[str, Any]) -> datetime | None:
    well = {"Available": "True", "Degraded": "False"}
    since = [
        c["lastTransitionTime"] for c in status.get("conditions", []) if c["status"] != well.get(c["type"], c["status"])
    ]
    return datetime.fromisoformat(min(since)) if since else None


def _degraded_since(status: Mapping[str, Any]) -> datetime | None:
    degraded = [c for c in status.get("conditions", []) if (c["type"], c["status"]) == ("Degraded", "True")]
    return datetime.fromisoformat(degraded[0]["lastTransitionTime"]) if degraded else None


def _join(noted: Mapping[str, Any] | None) -> Join | None:
    if not noted:
        return None
    since = datetime.fromisoformat(noted["since"])
    return Join(noted["member"], since, noted.get("failed", False), noted.get("generation", 0))


def _upgrade(noted: Mapping[str, Any] | None) -> Upgrade | None:
    if not noted:
        return None
    completed = noted.get("completed")
    return Upgrade(
        source=noted["from"],
        to=noted["to"],
        started=datetime.fromisoformat(noted["started"]),
        snapshot=noted.get("snapshot") or "",
        log_ready=bool(noted.get("logReady")),
        completed=datetime.fromisoformat(completed) if completed else None,
    )


def _snapshot(kube: Kube, cluster: Cluster, upgrade: Upgrade | None) -> dict[str, Manifest]:
    """The EtcdBackup from before an upgrade, as long as it matters."""
    if upgrade is None or not upgrade.snapshot or (upgrade.completed and not cluster.upgrade.keep_for):
        return {}
    found = kube.get("EtcdBackup", cluster.namespace, upgrade.snapshot)
    return {f"EtcdBackup/{upgrade.snapshot}": found} if found else {}


def _unexpandable(kube: Kube, cluster: Cluster, claims: list[Manifest]) -> tuple[str, ...]:
    """Only asked when claims are to grow; not being allowed to ask is no answer."""
    small = any(is_small(cluster, _claim(each, {})) for each in claims)
    names = sorted({claim["spec"].get("storageClassName", "") for claim in claims}) if small else []
    try:
        classes = {name: kube.get("StorageClass", None, name) if name else None for name in names}
    except KubeError as error:
        if error.status == 403:
            return ()
        raise
    return tuple(name or "(none)" for name, found in classes.items() if not (found or {}).get("allowVolumeExpansion"))


def _storage_class_missing(kube: Kube, cluster: Cluster, claims: list[Manifest]) -> bool:
    """Only looked for before there are claims; not being allowed to look is no reason to refuse."""
    if claims or cluster.storage.type != "Persistent" or not cluster.storage.class_name:
        return False
    try:
        return kube.get("StorageClass", None, cluster.storage.class_name) is None
    except KubeError as error:
        if error.status == 403:
            return False
        raise
