"""Looking: what a plan for an EtcdRestore needs, from the API server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from . import jobs, restore_jobs, spec
from .backup import API_VERSION
from .backup_observe import job_of, own_image
from .kube import Kube, KubeError, Manifest
from .manifests import UID_LABEL
from .restore import Restore, Snapshot, of_backup
from .restore_planner import Observed, Phase, backup_name


def observe(api: Kube, restore: Restore, status: dict[str, Any]) -> Observed:
    namespace, finished = restore.namespace, status.get("phase") in (Phase.SUCCEEDED, Phase.FAILED)
    resource = api.get("EtcdCluster", namespace, restore.cluster)
    snapshot, problem = (None, "") if finished else _snapshot(api, restore)
    source = job_of(api, namespace, restore_jobs.source_name(restore))
    would_be, refusal = (resource, "") if resource or restore.in_place else _template(api, restore, finished)
    cluster = spec.read(would_be) if would_be else None
    selector = f"etcdops.dev/cluster={restore.cluster}"
    claims = api.list("PersistentVolumeClaim", namespace, selector)
    before = api.get("EtcdBackup", namespace, backup_name(restore)) if restore.in_place and not finished else None
    return Observed(
        now=datetime.now(UTC),
        image=own_image(api),
        snapshot=snapshot,
        problem=problem,
        resource=resource,
        cluster=cluster,
        pods=len(api.list("Pod", namespace, selector)),
        claims={each["metadata"]["name"]: each["metadata"]["labels"].get(UID_LABEL, "") for each in claims},
        source=source,
        check_log=api.log(namespace, source.pod, "check") if source and source.running and not finished else "",
        jobs=_jobs(api, restore, status),
        backup=before.get("status", {}) if before else None,
        refusal=refusal,
    )


def _jobs(api: Kube, restore: Restore, status: dict[str, Any]) -> dict[str, jobs.Job]:
    """The Jobs on members' volumes."""
    names = [
        restore_jobs.member_name(restore, verb, ordinal)
        for verb in ("member", "putback", "tidy")
        for ordinal in range(status.get("size", 0))
    ]
    if status.get("tidied"):
        return {}
    found = {name: job_of(api, restore.namespace, name) for name in names}
    return {name: job for name, job in found.items() if job}


def _snapshot(api: Kube, restore: Restore) -> tuple[Snapshot | None, str]:
    if not restore.backup:
        return restore.snapshot, ""
    resource = api.get("EtcdBackup", restore.namespace, restore.backup)
    if resource is None:
        return None, f"there is no EtcdBackup {restore.backup}; name another one, or where the snapshot is kept"
    if resource.get("status", {}).get("phase") != "Succeeded":
        state = resource.get("status", {}).get("phase", "Pending")
        return None, f"EtcdBackup {restore.backup} has not succeeded: it is {state}"
    return of_backup(resource), ""


def _template(api: Kube, restore: Restore, finished: bool) -> tuple[Manifest | None, str]:
    """The EtcdCluster as it would be made, with all defaults; or why Kubernetes would not take it."""
    if finished:
        return None, ""
    meta = {"namespace": restore.namespace, "name": restore.cluster}
    wanted = {"apiVersion": API_VERSION, "kind": "EtcdCluster", "metadata": meta, "spec": restore.template}
    try:
        return api.create(wanted, dry_run=True), ""
    except KubeError as error:
        if error.status not in (400, 422):
            raise
        return {**wanted, "metadata": {**meta, "uid": ""}, "spec": {"size": 0, "version": "3.0.0"}}, str(error)
