"""What the operator sees of the model: the manifests of Kubernetes, read by the operator's own eyes, and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import observe
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import TEMPLATE_HASH, UID_LABEL
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Answer, Observed
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from .etcd import CLUSTER_ID, Etcd
from .kubernetes import MISSING, Claim, Kubernetes, Pod, moment


def look(kubernetes: Kubernetes, status: Mapping[str, Any], deaf: frozenset[str] = frozenset()) -> Observed:
    """A picture of the moment; pods in `deaf` do not answer in time."""
    pods = [_pod(pod) for pod in kubernetes.pods.values()]
    claims = [_claim(claim) for claim in kubernetes.claims.values()]
    led = kubernetes.etcd.leading is not None
    answers = {pod.name: _answer(kubernetes.etcd, pod, deaf, led=led) for pod in kubernetes.pods.values() if pod.node}
    tells = any(answer.healthy and answer.status and not answer.status.is_learner for answer in answers.values())
    api = cast(Kube, _Api(kubernetes))
    now, nodes = moment(kubernetes.now), observe._nodes(api, pods, claims, answers)
    known = remembered(status)
    return Observed(
        now=now,
        **known,
        objects=dict(kubernetes.objects) | observe._snapshot(api, kubernetes.cluster, known["upgrade"]),
        pods=tuple(observe._pod(pod, nodes, now) for pod in pods),
        claims=tuple(observe._claim(claim, nodes) for claim in claims),
        answers=answers,
        members=kubernetes.etcd.member_list if tells else None,
        unexpandable=() if kubernetes.expandable else ("standard",),
    )


def remembered(status: Mapping[str, Any]) -> dict[str, Any]:
    """What only the status knows."""
    return {
        "cluster_id": status.get("clusterID"),
        "phase": status.get("phase", ""),
        "unwell_since": observe._unwell_since(status),
        "degraded_since": observe._degraded_since(status),
        "join": observe._join(status.get("join")),
        "upgrade": observe._upgrade(status.get("upgrade")),
    }


class _Api:
    """As much of the API server as is asked for nodes and backups."""

    def __init__(self, kubernetes: Kubernetes) -> None:
        self._nodes, self._backups = kubernetes.nodes, kubernetes.backups

    def get(self, kind: str, _namespace: None, name: str) -> Manifest | None:
        if kind == "EtcdBackup":
            return {**self._backups[name]} if name in self._backups else None
        if name not in self._nodes:
            return None
        ready = "True" if self._nodes[name].state == "up" else "Unknown"
        return {"status": {"conditions": [{"type": "Ready", "status": ready}]}}


def _answer(etcd: Etcd, pod: Pod, deaf: frozenset[str], *, led: bool) -> Answer:
    process = pod.process
    if process is None or not process.connected or pod.name in deaf:
        return Answer(None, healthy=False, error="no answer")
    if process.data.cluster != CLUSTER_ID:
        return Answer(None, healthy=False, error="it is of another cluster")
    serves = led and process.data.member in etcd.members
    version = f"3.{etcd.agreed}.0" if serves and etcd.agreed else ""
    return Answer(etcd.status(process, serves=serves), serves, "" if serves else "no leader", version)


def _pod(pod: Pod) -> Manifest:
    times = {"startedAt": moment(pod.began).isoformat(), "finishedAt": moment(pod.ended).isoformat()}
    ended = {"terminated": {"exitCode": pod.code, "message": pod.last_words, **times}} if pod.code else {}
    if pod.process:
        state: Manifest = {"running": {}}
    elif pod.version in MISSING:
        state = {"waiting": {"reason": "ImagePullBackOff"}}
    else:
        state = {"waiting": {"reason": "CrashLoopBackOff"}} if pod.code else {"waiting": {}}
    container = {"name": "etcd", "restartCount": pod.restarts, "state": state, "lastState": ended}
    return {
        "metadata": {
            "name": pod.name,
            "uid": pod.uid,
            "creationTimestamp": moment(pod.created).isoformat(),
            "annotations": {TEMPLATE_HASH: pod.template_hash},
            **({} if pod.deleting is None else {"deletionTimestamp": moment(pod.deleting).isoformat()}),
        },
        "spec": {"containers": [{"image": f"etcd:v{pod.version}"}], **({"nodeName": pod.node} if pod.node else {})},
        "status": {
            "podIP": "198.18.0.1",
            "containerStatuses": [container] if pod.started or pod.version in MISSING else [],
        },
    }


def _claim(claim: Claim) -> Manifest:
    return {
        "metadata": {
            "name": claim.name,
            "labels": {UID_LABEL: claim.cluster_uid},
            "annotations": {"volume.kubernetes.io/selected-node": claim.node} if claim.node else {},
            **({"deletionTimestamp": ""} if claim.deleting else {}),
        },
        "spec": {"resources": {"requests": {"storage": claim.wanted}}},
        "status": {"capacity": {"storage": claim.size}},
    }
