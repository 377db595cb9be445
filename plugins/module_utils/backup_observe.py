"""Looking: what a plan for an EtcdBackup needs, from the API server."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from . import jobs, spec
from .backup import Backup
from .backup_planner import Observed, Phase, cleanup_name, job_name
from .kube import Kube, KubeError


def observe(api: Kube, backup: Backup, status: dict[str, Any]) -> Observed:
    now = datetime.now(UTC)
    job = job_of(api, backup.namespace, job_name(backup))
    cleanup = job_of(api, backup.namespace, cleanup_name(backup))
    if status.get("phase") in (Phase.SUCCEEDED, Phase.FAILED) and not backup.deleting:
        return Observed(now, job=job, cleanup=cleanup)
    resource = api.get("EtcdCluster", backup.namespace, backup.cluster)
    cluster = spec.read(resource) if resource else None
    starting = job is None and cluster is not None
    return Observed(
        now=now,
        image=own_image(api),
        cluster=cluster,
        cluster_status=(resource or {}).get("status", {}),
        nodes=_nodes(api, cluster) if starting and cluster else {},
        job=job,
        check_log=api.log(backup.namespace, job.pod, "check") if job and job.complete and job.pod else "",
        cleanup=cleanup,
    )


def job_of(api: Kube, namespace: str, name: str) -> jobs.Job | None:
    found = api.get("Job", namespace, name)
    if found is None or "deletionTimestamp" in found["metadata"]:
        return None
    return jobs.observe(
        found, api.list("Pod", namespace, f"batch.kubernetes.io/controller-uid={found['metadata']['uid']}")
    )


def own_image(api: Kube) -> str:
    """The image of the pod that we run in: Jobs run our own playbooks."""
    namespace, name = os.environ.get("POD_NAMESPACE", ""), os.environ.get("POD_NAME", "")
    pod = api.get("Pod", namespace, name) if namespace and name else None
    if pod is None:
        raise KubeError(
            0, "Jobs run the operator's own image, and POD_NAMESPACE and POD_NAME name no pod to take it from."
        )
    return str(next(c["image"] for c in pod["spec"]["containers"] if c["name"] == "operator"))


def _nodes(api: Kube, cluster: spec.Cluster) -> dict[str, str]:
    pods = api.list("Pod", cluster.namespace, cluster.selector)
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}
