"""Jobs: how one is built from containers, and what became of it. Knows nothing of etcd."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from . import security
from .conditions import sentence
from .manifest import Manifest
from .ownership import is_left_over, is_owned

# A Job must not take CPU from the members beside it: it gets what is left over (members may have no request at all, and
# would starve beside a container that has one). Its memory is small, whatever the size of a snapshot.
_RESOURCES = {"requests": {"cpu": "1m", "memory": "96Mi"}, "limits": {"memory": "128Mi"}}
STARTING = timedelta(minutes=2)  # how long a pod may take to start before its problem counts as a failure
_OVERDUE = timedelta(minutes=1)  # a pod that should have ended so long ago counts as ended


@dataclass(frozen=True)
class Parts:
    """What a container needs of its pod: environment variables, mounts, and the volumes behind them."""

    env: Mapping[str, Any] = field(default_factory=dict)
    mounts: tuple[Manifest, ...] = ()
    volumes: tuple[Manifest, ...] = ()

    def __add__(self, other: Parts) -> Parts:
        return Parts({**self.env, **other.env}, self.mounts + other.mounts, self.volumes + other.volumes)


def volume(name: str, source: Manifest, path: str, *, read_only: bool = False) -> Parts:
    mount = {"name": name, "mountPath": path} | ({"readOnly": True} if read_only else {})
    return Parts(mounts=(mount,), volumes=({"name": name, **source},))


def secret(name: str, secret_name: str, path: str, keys: Sequence[str] = ()) -> Parts:
    """A Secret; with `keys`, nothing else of it.

    A key that is missing is reported by the program that reads it: a pod that requires it never starts, without a word.
    """
    source: Manifest = {"secretName": secret_name, "defaultMode": 0o440}
    source |= {"items": [{"key": key, "path": key} for key in keys], "optional": True} if keys else {}
    return volume(name, {"secret": source}, path, read_only=True)


def only_file(name: str, folder: str, path: str) -> Parts:
    """One file of a volume that is mounted at `folder` in another container, read-only. It must exist by then."""
    file = {"mountPath": path, "subPath": path.removeprefix(f"{folder}/"), "readOnly": True}
    return Parts(mounts=({"name": name, **file},))


def container(name: str, image: str, command: Sequence[str], parts: Parts) -> Manifest:
    """A container without any privilege that it does not need."""
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
        "securityContext": security.container_context(),
        "volumeMounts": list(parts.mounts),
    }


@dataclass(frozen=True)
class Order:
    """A Job to be created: its owner, the containers that run in it one after the other, and where."""

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


def manifest(order: Order) -> Manifest:
    """The Job."""
    labels = {"app.kubernetes.io/name": "etcdops-job", "app.kubernetes.io/managed-by": "etcdops", **order.labels}
    volumes = {each["name"]: each for each in ({"name": "tmp", "emptyDir": {}}, *order.volumes)}
    *init, main = order.containers
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,  # what it leaves is removed by a cleanup Job anyway
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": security.pod_context(),
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
    """Prefer that node."""
    if not node:
        return {}
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    preferred = [{"weight": 100, "preference": term}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


@dataclass(frozen=True)
class Ended:
    """A container that has ended."""

    code: int
    message: str

    @property
    def report(self) -> dict[str, Any]:
        """What a worker reported; empty when it was killed before."""
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
    stopping: bool = False  # it or its owner was deleted, and its pods have not ended yet
    pod: str = ""
    address: str = ""
    begun: bool = False  # a container has run
    running: bool = False  # the main container runs
    ended: Mapping[str, Ended] = field(default_factory=dict)  # by container
    problem: str = ""  # why the pod does not start or does not continue
    waits_since: datetime | None = None  # when its last container ended
    uid: str = ""  # "" while it is stopping: then there is nothing to delete any more

    @property
    def finished(self) -> bool:
        return self.complete or bool(self.failed)

    @property
    def trouble(self) -> str:
        """The problem as a sentence that follows another one; "" without."""
        return f" {sentence(self.problem)}" if self.problem else ""

    def is_stuck(self, now: datetime) -> bool:
        """Whether it has had its problem for so long that it counts as failed."""
        return bool(self.problem) and now - (self.waits_since or self.started) > STARTING

    @property
    def why(self) -> str:
        """Why it failed, in a sentence."""
        bad = [(name, each) for name, each in self.ended.items() if each.code != 0]
        if self.failed == "DeadlineExceeded":
            return f"the Job did not end before its deadline.{self.trouble}"
        if bad:
            name, each = bad[-1]
            if each.code == 137 and not each.report:
                return f"the container {name} was killed"
            return each.words
        return self.problem or "its pod was deleted or its node went away"


def patience(job: Job, now: datetime) -> int:
    """Seconds until a running Job is looked at again: a look costs something, and a large snapshot takes long."""
    return min(15, max(2, int((now - job.started).total_seconds()) // 5))


def own_pods(name: str, pods: Sequence[Manifest]) -> list[Manifest]:
    """The pods of a Job."""
    return [pod for pod in pods if pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name") == name]


def is_foreign(job: Manifest | None, owner: Manifest) -> bool:
    """Whether a Job was made for something else than the owner, or an earlier object of its name."""
    return job is not None and not is_owned(job, owner["uid"]) and not is_left_over(job, owner)


def observe(job: Manifest | None, pods: Sequence[Manifest], owner: Manifest, now: datetime) -> Job | None:
    """The state of a Job, by its pods; None when it is gone, or not made for this owner."""
    if is_foreign(job, owner):
        return None
    alive = any(_alive(pod, now) for pod in pods)
    if job is None or "deletionTimestamp" in job["metadata"]:
        return Job(now, False, "", stopping=True) if alive else None
    if not is_owned(job, owner["uid"]):
        return Job(now, False, "", stopping=True)  # of a deleted object of the same name
    conditions = {
        each["type"]: each for each in job.get("status", {}).get("conditions", []) if each["status"] == "True"
    }
    failed = None if alive else conditions.get("Failed") or conditions.get("FailureTarget")
    found = Job(
        started=datetime.fromisoformat(job["metadata"]["creationTimestamp"]),
        complete="Complete" in conditions,
        failed=failed.get("reason", "Failed") if failed else "",
        uid=job["metadata"]["uid"],
    )
    pod = max(pods, key=lambda each: each["metadata"]["creationTimestamp"], default=None)
    return _with_pod(found, pod) if pod else found


def _alive(pod: Manifest, now: datetime) -> bool:
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return False
    ends = pod["metadata"].get("deletionTimestamp")  # on a node that is gone, nothing confirms it
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
