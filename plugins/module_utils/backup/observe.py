"""Observing an EtcdBackup: everything that a plan needs, from the API server."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from ..api import cluster as api_cluster
from ..api import images
from ..api.backup import BACKUP_LABEL, BACKUP_UID, Backup, Destination
from ..cluster.manifests import image_of
from ..kube import jobs
from ..kube.client import Kube
from ..kube.errors import KubeError
from ..kube.manifest import Manifest
from ..plan import Ref
from .jobs import cleanup_name, job_name, owner
from .plan import Observation
from .planner import outcome


def observe(api: Kube, backup: Backup, status: dict[str, Any]) -> Observation:
    now = datetime.now(UTC)
    pods = api.list("Pod", backup.namespace, f"{BACKUP_LABEL}={backup.name}")
    made = {name: api.get("Job", backup.namespace, name) for name in (job_name(backup), cleanup_name(backup))}
    foreign = frozenset(f"Job {name}" for name, each in made.items() if jobs.is_foreign(each, owner(backup)))
    job, cleanup = (jobs.observe(each, jobs.own_pods(n, pods), owner(backup), now) for n, each in made.items())
    if outcome(status) and not backup.deleting:
        return Observation(now, job=job, cleanup=cleanup)
    resource = api.get("EtcdCluster", backup.namespace, backup.cluster)
    cluster = api_cluster.parse(resource) if resource else None
    starting = job is None and cluster is not None
    claim = _own_claim(api, backup)
    members = _members(api, cluster) if starting and cluster else {}
    return Observation(
        now=now,
        image=own_image(api),
        cluster=cluster,
        cluster_status=(resource or {}).get("status", {}),
        nodes={name: pod["spec"].get("nodeName", "") for name, pod in members.items()},
        images={name: image_of(pod) for name, pod in members.items()},
        refused_image=images.refusal(cluster, images.allowed()) if cluster else "",
        claim_uid=_made_for(claim) if claim else None,
        claim=Ref(claim["metadata"]["name"], claim["metadata"]["uid"]) if claim else None,
        foreign=foreign,
        shared=_shared(api, backup),
        job=job,
        check_log=api.log(backup.namespace, job.pod, "check") if job and job.complete and job.pod else None,
        cleanup=cleanup,
        missing=missing(api, backup.namespace, backup.destination, backup.encryption_secret) if starting else "",
    )


def missing(api: Kube, namespace: str, destination: Destination, encryption_secret: str) -> str:
    """The objects that a Job needs and that do not exist: its pod would wait for them for ever."""
    claim, s3 = destination.claim, destination.s3
    claims = [claim.name] if claim and not claim.own else []
    secrets = [*([s3.credentials_secret, s3.ca_secret] if s3 else []), encryption_secret]
    mounted = [("PersistentVolumeClaim", name) for name in claims] + [("Secret", name) for name in secrets if name]
    absent = [f"{kind} {name}" for kind, name in mounted if api.get(kind, namespace, name) is None]
    verb = "does" if len(absent) == 1 else "do"
    return f"{' and '.join(absent)} {verb} not exist in this namespace" if absent else ""


def own_image(api: Kube) -> str:
    """The operator's image, for Jobs, which run our own playbooks: that of its pod, or OPERATOR_IMAGE outside a pod."""
    if image := os.environ.get("OPERATOR_IMAGE"):
        return image
    namespace, name = os.environ.get("POD_NAMESPACE", ""), os.environ.get("POD_NAME", "")
    pod = api.get("Pod", namespace, name) if namespace and name else None
    if pod is None:
        raise KubeError(
            0,
            "Jobs of backups and restores need the operator's image: POD_NAMESPACE and POD_NAME name no pod. "
            "Outside a pod, set OPERATOR_IMAGE to an image that the nodes can pull.",
        )
    return str(next(c["image"] for c in pod["spec"]["containers"] if c["name"] == "operator"))


def _members(api: Kube, cluster: api_cluster.Cluster) -> dict[str, Manifest]:
    """The members' pods, by name."""
    return {pod["metadata"]["name"]: pod for pod in api.list("Pod", cluster.namespace, cluster.selector)}


def _own_claim(api: Kube, backup: Backup) -> Manifest | None:
    claim = api.get("PersistentVolumeClaim", backup.namespace, backup.own_claim) if backup.own_claim else None
    return None if claim is None or "deletionTimestamp" in claim["metadata"] else claim


def _made_for(claim: Manifest) -> str:
    return str(claim["metadata"].get("labels", {}).get(BACKUP_UID, ""))


def _shared(api: Kube, backup: Backup) -> bool:
    """Whether another EtcdBackup is kept on the PVC that was made for this one."""
    if not backup.own_claim or not backup.deleting:
        return False
    others = api.list("EtcdBackup", backup.namespace, "")
    return any(each["spec"]["destination"].get("claim", {}).get("name") == backup.own_claim for each in others)
