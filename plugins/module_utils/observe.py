"""Looking: one reading of everything that a plan needs, from the API server and from every member."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import secrets
from .etcd import Client, Endpoint, EtcdError, MemberList, Tls, ask_all
from .kube import Kube, KubeError, Manifest
from .manifests import TEMPLATE_HASH, UID_LABEL
from .observed import Answer, Claim, Observed, Pod
from .spec import Cluster

_TIMEOUT = 1.5  # seconds for one question to a member


def observe(kube: Kube, cluster: Cluster, status: Mapping[str, Any]) -> Observed:
    """A picture of the cluster now. Members are asked while the objects are read."""
    now, operator = datetime.now(UTC), cluster.secret("operator")
    with ThreadPoolExecutor(1) as aside:
        reading = aside.submit(_read, kube.another(), cluster)
        pods = tuple(_pod(pod) for pod in kube.list("Pod", cluster.namespace, cluster.selector))
        credentials = kube.get("Secret", cluster.namespace, operator) if cluster.tls.enabled else None
        answers, members = _ask(cluster, pods, credentials)
        objects, claims, found = reading.result()
    tls_secrets = {name: credentials if name == operator else found.get(name) for name in secrets.secret_names(cluster)}
    return Observed(
        now=now,
        cluster_id=status.get("clusterID"),
        objects=objects,
        pods=pods,
        claims=claims,
        answers=answers,
        members=members,
        certificates=secrets.check(cluster, tls_secrets, secrets.cluster_domain(), now),
        storage_class_missing=_storage_class_missing(kube, cluster, claims),
    )


def _read(kube: Kube, cluster: Cluster) -> tuple[dict[str, Manifest], tuple[Claim, ...], dict[str, Manifest | None]]:
    """The objects that make the cluster, its claims, and its Secrets but the operator's own."""
    names = (
        ("Service", cluster.peer_service),
        ("Service", cluster.client_service),
        ("ConfigMap", cluster.config_map),
        ("PodDisruptionBudget", cluster.name),
        ("StatefulSet", cluster.name),
    )
    found = {f"{kind}/{name}": kube.get(kind, cluster.namespace, name) for kind, name in names}
    claims = tuple(_claim(claim) for claim in kube.list("PersistentVolumeClaim", cluster.namespace, cluster.selector))
    others = [name for name in secrets.secret_names(cluster) if name != cluster.secret("operator")]
    own = {name: kube.get("Secret", cluster.namespace, name) for name in others}
    return {key: value for key, value in found.items() if value}, claims, own


def _ask(
    cluster: Cluster, pods: tuple[Pod, ...], credentials: Manifest | None
) -> tuple[dict[str, Answer], MemberList | None]:
    """Ask every member how it is, side by side."""
    endpoints = {pod.name: Endpoint(cluster.client_url(pod.name), pod.address) for pod in pods if pod.address}
    if not endpoints or (cluster.tls.enabled and credentials is None):
        return {}, None
    with tempfile.TemporaryDirectory() as folder:
        tls = _tls(Path(folder), credentials) if cluster.tls.enabled and credentials else None
        if tls:
            _ = tls.context  # reads the files while they are there
        clients = [Client(endpoint, tls, timeout=_TIMEOUT) for endpoint in endpoints.values()]
        said = ask_all(clients, _question, deadline=3.0)
    answers, lists = {}, []
    for pod, reply in zip(endpoints, said, strict=True):
        if isinstance(reply, EtcdError):
            answers[pod] = Answer(None, healthy=False, error=str(reply))
        else:
            answers[pod], members = reply
            lists += [members] if members else []
    return answers, lists[0] if lists else None


def _question(client: Client) -> tuple[Answer, MemberList | None]:
    with client:
        status = client.status()
        try:
            client.health()
            return Answer(status, healthy=True), client.members()
        except EtcdError as error:
            return Answer(status, healthy=False, error=str(error)), None


def _tls(folder: Path, secret: Manifest) -> Tls:
    """Files for ssl, which reads from nothing else."""
    for name in ("ca.crt", "tls.crt", "tls.key"):
        path = folder / name
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(secret["data"][name]))
    return Tls(str(folder / "ca.crt"), str(folder / "tls.crt"), str(folder / "tls.key"))


def _pod(pod: Manifest) -> Pod:
    meta, status = pod["metadata"], pod.get("status", {})
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    return Pod(
        name=meta["name"],
        uid=meta["uid"],
        address=status.get("podIP"),
        ready=conditions.get("Ready", {}).get("status") == "True",
        deleting="deletionTimestamp" in meta,
        created=datetime.fromisoformat(meta["creationTimestamp"]),
        template_hash=(meta.get("annotations") or {}).get(TEMPLATE_HASH, ""),
        problem=_problem(status, conditions),
    )


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


def _claim(claim: Manifest) -> Claim:
    return Claim(claim["metadata"]["name"], claim["metadata"]["labels"].get(UID_LABEL, ""))


def _storage_class_missing(kube: Kube, cluster: Cluster, claims: tuple[Claim, ...]) -> bool:
    """Only looked for before there are claims; not being allowed to look is no reason to refuse."""
    if claims or cluster.storage.type != "Persistent" or not cluster.storage.class_name:
        return False
    try:
        return kube.get("StorageClass", None, cluster.storage.class_name) is None
    except KubeError as error:
        if error.status == 403:
            return False
        raise
