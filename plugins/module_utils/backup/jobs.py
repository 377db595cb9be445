"""The Jobs that do the heavy work, near the data and never in the operator's pod; and what became of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from ..api.backup import API_VERSION, Destination
from ..api.cluster import Cluster
from ..cluster.manifests import USER
from ..kube.manifest import Manifest
from ..kube.reporting import sentence

_PLAYBOOKS = "/opt/ansible/collections/ansible_collections/etcdops/etcd/playbooks"
_REPORT = "/dev/termination-log"
SCRATCH = "/scratch"
CLAIM = "/claim"
SNAPSHOT = f"{SCRATCH}/snapshot.db"
_TLS = "/etc/etcdops/etcd"
_S3_CA = "/etc/etcdops/s3"
_ENCRYPTION = "/etc/etcdops/encryption"
# A Job must not take from the members that it works beside: of the CPU it gets what is left over (members may have no
# request at all, and would starve beside one that has), of memory little, whatever the size of a snapshot.
_RESOURCES = {"requests": {"cpu": "1m", "memory": "96Mi"}, "limits": {"memory": "128Mi"}}

# What is freed goes back at once: a snapshot goes through memory in pieces of a megabyte and more.
_MALLOC = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
STARTING = timedelta(minutes=2)  # how long a pod may take to start before its problem is the reason of a failure
_OVERDUE = timedelta(minutes=1)  # a pod that should have ended so long ago is taken for ended


@dataclass(frozen=True)
class Parts:
    """What a container needs of its pod: variables, mounts, and the volumes behind them."""

    env: Mapping[str, Any] = field(default_factory=dict)
    mounts: tuple[Manifest, ...] = ()
    volumes: tuple[Manifest, ...] = ()

    def __add__(self, other: Parts) -> Parts:
        return Parts({**self.env, **other.env}, self.mounts + other.mounts, self.volumes + other.volumes)


def volume(name: str, source: Manifest, path: str, *, read_only: bool = False) -> Parts:
    mount = {"name": name, "mountPath": path} | ({"readOnly": True} if read_only else {})
    return Parts(mounts=(mount,), volumes=({"name": name, **source},))


def scratch() -> Parts:
    return volume("scratch", {"emptyDir": {}}, SCRATCH)


def claim(name: str, path: str = CLAIM, *, read_only: bool = False) -> Parts:
    return volume("claim", {"persistentVolumeClaim": {"claimName": name}}, path, read_only=read_only)


def secret(name: str, secret_name: str, path: str, *, optional: bool = False) -> Parts:
    source = {"secretName": secret_name, "defaultMode": 0o440} | ({"optional": True} if optional else {})
    return volume(name, {"secret": source}, path, read_only=True)


def store(destination: Destination, *, read_only: bool = False) -> Parts:
    """What reaching a destination takes."""
    if destination.claim:
        return claim(destination.claim.name, read_only=read_only)
    s3 = destination.s3
    assert s3  # noqa: S101
    env: dict[str, Any] = {"SNAPSHOT_S3_PATH_STYLE": str(s3.path_style).lower()}
    env |= {"AWS_ENDPOINT_URL_S3": s3.endpoint} if s3.endpoint else {}
    env |= {"AWS_REGION": s3.region} if s3.region else {}
    env |= {"SNAPSHOT_S3_NODE_CREDENTIALS": "true"} if s3.node_credentials else {}
    found = Parts()
    if s3.credentials_secret:
        for variable, key in (("AWS_ACCESS_KEY_ID", "accessKeyID"), ("AWS_SECRET_ACCESS_KEY", "secretAccessKey")):
            env[variable] = {"secretKeyRef": {"name": s3.credentials_secret, "key": key}}
    if s3.ca_secret:
        env["AWS_CA_BUNDLE"] = f"{_S3_CA}/ca.crt"
        found = secret("s3-ca", s3.ca_secret, _S3_CA)
    return found + Parts(env)


def path_in_pod(destination: Destination, name: str) -> str:
    """What a module takes as the place of a snapshot of that name."""
    place = destination.place(name)
    return place if destination.s3 else place.replace(f"claim://{destination.claim.name}", CLAIM)  # type: ignore[union-attr]


def in_words(destination: Destination, text: str) -> str:
    """What a Job said, with places as the user knows them."""
    return text.replace(f"{CLAIM}/", f"claim://{destination.claim.name}/") if destination.claim else text


def encryption(secret_name: str) -> Parts:
    if not secret_name:
        return Parts()
    return secret("encryption", secret_name, _ENCRYPTION) + Parts({"SNAPSHOT_KEYS": _ENCRYPTION})


def etcd_client(cluster: Cluster, pods: Sequence[str]) -> Parts:
    """What talking with a cluster's members takes, in this order."""
    found = Parts({"ETCDCTL_ENDPOINTS": ",".join(cluster.client_url(pod) for pod in pods)})
    if not cluster.tls.enabled:
        return found
    names = {"ETCDCTL_CACERT": "ca.crt", "ETCDCTL_CERT": "tls.crt", "ETCDCTL_KEY": "tls.key"}
    files = {variable: f"{_TLS}/{file}" for variable, file in names.items()}
    return found + secret("etcd-tls", cluster.secret("operator"), _TLS) + Parts(files)


def worker(name: str, image: str, playbook: str, parts: Parts) -> Manifest:
    """A container of the operator's own image that runs a playbook and reports by its termination message."""
    parts = parts + Parts({"SNAPSHOT_REPORT": _REPORT, "USER": "ansible", **_MALLOC})
    # Not the first on PATH: a resident Python is of no use to one play.
    command = ["/usr/local/bin/ansible-playbook", f"{_PLAYBOOKS}/{playbook}.yml"]
    return container(name, image, command, parts + volume("tmp", {"emptyDir": {}}, "/tmp"))  # noqa: S108


def etcdutl(name: str, image: str, arguments: Sequence[str], parts: Parts) -> Manifest:
    """A container of etcd's own image, which has no shell."""
    return container(name, image, ["/usr/local/bin/etcdutl", *arguments], parts)


def container(name: str, image: str, command: Sequence[str], parts: Parts) -> Manifest:
    """A container with everything taken from it that it does not need."""
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "env": [
            {"name": variable, "valueFrom": value} if isinstance(value, dict) else {"name": variable, "value": value}
            for variable, value in parts.env.items()
        ],
        "resources": _RESOURCES,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": list(parts.mounts),
    }


@dataclass(frozen=True)
class Order:
    """A Job to be made: who owns it, what runs in it one after the other, and where."""

    namespace: str
    name: str
    owner: Manifest
    containers: tuple[Manifest, ...]  # the last one is the main one
    volumes: tuple[Manifest, ...]
    deadline: int  # seconds
    labels: Mapping[str, str] = field(default_factory=dict)
    affinity: Manifest = field(default_factory=dict)
    pod: Mapping[str, Any] = field(default_factory=dict)  # spec.pod of the EtcdCluster
    retries: int = 0


def owner(kind: str, name: str, uid: str) -> Manifest:
    """An object of ours as the owner of a Job."""
    found: Manifest = {"apiVersion": API_VERSION, "kind": kind, "name": name, "uid": uid}
    return found | {"controller": True, "blockOwnerDeletion": True}


def manifest(order: Order) -> Manifest:
    """The Job."""
    labels = {"app.kubernetes.io/name": "etcdops-job", "app.kubernetes.io/managed-by": "etcdops", **order.labels}
    volumes = {each["name"]: each for each in ({"name": "tmp", "emptyDir": {}}, *order.volumes)}
    *init, main = order.containers
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,  # what it leaves is removed by others anyway
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
        **({"initContainers": init} if init else {}),
        "containers": [main],
        "volumes": list(volumes.values()),
        **({"affinity": order.affinity} if order.affinity else {}),
        **{
            name: order.pod[name]
            for name in ("nodeSelector", "tolerations", "priorityClassName", "imagePullSecrets")
            if name in order.pod
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "namespace": order.namespace,
            "name": order.name,
            "labels": labels,
            "ownerReferences": [order.owner],
        },
        "spec": {
            "backoffLimit": order.retries,
            "activeDeadlineSeconds": order.deadline,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def near(node: str) -> Manifest:
    """On that node if it can be."""
    if not node:
        return {}
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    preferred = [{"weight": 100, "preference": term}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


# -- what became of them


@dataclass(frozen=True)
class Ended:
    """A container that has ended."""

    code: int
    message: str

    @property
    def report(self) -> dict[str, Any]:
        """What a worker reported; empty when it was killed before it could."""
        try:
            said = json.loads(self.message)
        except ValueError:
            return {}
        return said if isinstance(said, dict) else {}

    @property
    def words(self) -> str:
        """Why it failed."""
        if error := self.report.get("error"):
            return str(error)
        lines = [line for line in self.message.strip().splitlines() if line.strip()]
        return lines[-1][:500] if lines else f"it ended with code {self.code}"


@dataclass(frozen=True)
class Job:
    """A Job and its newest pod. It has ended when its pods have: until then they may write."""

    started: datetime
    complete: bool
    failed: str  # Kubernetes' reason, "" when it has not failed
    stopping: bool = False  # it was deleted, or its owner was, and it has not ended yet
    pod: str = ""
    address: str = ""
    begun: bool = False  # a container has run
    running: bool = False  # the main container runs
    ended: Mapping[str, Ended] = field(default_factory=dict)  # by container
    problem: str = ""  # why the pod does not start, or does not go on
    waits_since: datetime | None = None  # when its last container ended

    @property
    def finished(self) -> bool:
        return self.complete or bool(self.failed)

    @property
    def trouble(self) -> str:
        """The problem as a sentence that follows another one; "" without."""
        return f" {sentence(self.problem)}" if self.problem else ""

    def is_stuck(self, now: datetime) -> bool:
        """Has it had its problem for so long that it is the reason of a failure?"""
        return bool(self.problem) and now - (self.waits_since or self.started) > STARTING

    @property
    def why(self) -> str:
        """Why it failed, in a sentence."""
        bad = [(name, each) for name, each in self.ended.items() if each.code != 0]
        if self.failed == "DeadlineExceeded":
            return f"it took too long.{self.trouble}"
        if bad:
            name, each = bad[-1]
            if each.code == 137 and not each.report:
                return f"the container {name} was killed"
            return each.words
        return self.problem or "its pod was deleted or its node went away"


def patience(job: Job, now: datetime) -> int:
    """In how many seconds to look again at a Job that runs: a look costs something, and a large snapshot takes long."""
    return min(15, max(2, int((now - job.started).total_seconds()) // 5))


def own_pods(name: str, pods: Sequence[Manifest]) -> list[Manifest]:
    """Those of a Job."""
    return [pod for pod in pods if pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name") == name]


def observe(job: Manifest | None, pods: Sequence[Manifest], uid: str, now: datetime) -> Job | None:
    """What became of a Job, by its pods; None when there is none any more. `uid` is that of the object it is for."""
    alive = any(_alive(pod, now) for pod in pods)
    if job is None or "deletionTimestamp" in job["metadata"]:
        return Job(now, False, "", stopping=True) if alive else None
    if uid not in [each["uid"] for each in job["metadata"].get("ownerReferences", [])]:
        return Job(now, False, "", stopping=True)  # of an object that was deleted and had the same name
    conditions = {
        each["type"]: each for each in job.get("status", {}).get("conditions", []) if each["status"] == "True"
    }
    failed = None if alive else conditions.get("Failed") or conditions.get("FailureTarget")
    found = Job(
        started=datetime.fromisoformat(job["metadata"]["creationTimestamp"]),
        complete="Complete" in conditions,
        failed=failed.get("reason", "Failed") if failed else "",
    )
    pod = max(pods, key=lambda each: each["metadata"]["creationTimestamp"], default=None)
    return _with_pod(found, pod) if pod else found


def _alive(pod: Manifest, now: datetime) -> bool:
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return False
    ends = pod["metadata"].get("deletionTimestamp")  # on a node that is gone nobody confirms it
    return ends is None or now - datetime.fromisoformat(ends) < _OVERDUE


def _with_pod(job: Job, pod: Manifest) -> Job:
    status = pod.get("status", {})
    containers = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    ended = {
        each["name"]: Ended(terminated.get("exitCode", 1), terminated.get("message", ""))
        for each in containers
        if (terminated := each.get("state", {}).get("terminated"))
    }
    times = [each["state"]["terminated"].get("finishedAt") for each in containers if each["name"] in ended]
    main: Manifest = next(iter(status.get("containerStatuses", [])), {})
    return replace(
        job,
        pod=pod["metadata"]["name"],
        address=status.get("podIP", ""),
        begun=bool(ended) or any("running" in each.get("state", {}) for each in containers),
        running="running" in main.get("state", {}) and "deletionTimestamp" not in pod["metadata"],
        ended=ended,
        problem=_problem(status, containers),
        waits_since=max((datetime.fromisoformat(each) for each in times if each), default=None),
    )


def _problem(status: Manifest, containers: Sequence[Manifest]) -> str:
    conditions = {each["type"]: each for each in status.get("conditions", [])}
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        # Where a claim is the reason, the scheduler appends two words to its sentence.
        message = str(scheduled.get("message", "no reason given")).removesuffix(". not found")
        return f"its pod can't be scheduled: {message.rstrip('. ')}"
    for each in containers:
        waiting = each.get("state", {}).get("waiting", {})
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return f"its pod can't start: {waiting['reason']}: {waiting.get('message', '')}".strip(" :")
    return ""


def snapshot_status(log: str | None) -> dict[str, Any]:
    """What `etcdutl snapshot status --write-out=json` said of a snapshot; nothing, when it can't be made out."""
    for line in reversed((log or "").splitlines()):
        try:
            said = json.loads(line)
            found = {"revision": said["revision"], "keys": said["totalKey"], "hash": f"{said['hash']:x}"}
        except (ValueError, KeyError, TypeError):  # something else that it had to say
            continue
        return found | ({"etcdVersion": said["version"]} if said.get("version") else {})
    return {}
