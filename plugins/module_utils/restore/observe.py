"""Observing an EtcdRestore: everything that a plan needs, from the API server."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from ..api import cluster as api_cluster
from ..api import images
from ..api.backup import REQUESTED_BY
from ..api.restore import Restore, Snapshot, of_backup
from ..backup.observe import missing, own_image
from ..cluster.manifests import UID_LABEL
from ..kube import jobs
from ..kube.client import Kube, named
from ..kube.errors import KubeError
from ..kube.manifest import Manifest
from ..kube.ownership import API_VERSION, is_owned
from . import jobs as restore_jobs
from .plan import Claim, Observation, Phase
from .planner import backup_name, first_of


def observe(api: Kube, restore: Restore, status: dict[str, Any]) -> Observation:
    now = datetime.now(UTC)
    namespace, finished = restore.namespace, Phase(status.get("phase", Phase.PENDING)).finished
    resource = api.get("EtcdCluster", namespace, restore.cluster)
    snapshot, problem, pending = (None, "", "") if finished else _snapshot(api, restore)
    would_be, refusal = (resource, "") if resource or restore.in_place else _template(api, restore, finished)
    selector = f"etcdops.dev/cluster={restore.cluster}"
    cluster = api_cluster.parse(would_be) if would_be else None
    claims = {each["metadata"]["name"]: each for each in api.list("PersistentVolumeClaim", namespace, selector)}
    if cluster and not finished:
        claims |= _unlisted_claims(api, cluster, max(cluster.size, status.get("size", 0)), claims)
    pods = api.list("Pod", namespace, f"{restore_jobs.RESTORE_LABEL}={restore.name}")
    owner, found = restore_jobs.owner(restore), _found_jobs(api, restore, status)
    foreign = {f"Job {name}" for name, each in found.items() if jobs.is_foreign(each, owner)}
    seen = {name: jobs.observe(each, jobs.own_pods(name, pods), owner, now) for name, each in found.items()}
    source = seen.pop(restore_jobs.source_name(restore))
    needed = restore.in_place and not status.get("tidied")
    before = api.get("EtcdBackup", namespace, backup_name(restore)) if needed else None
    if before and (before["metadata"].get("annotations") or {}).get(REQUESTED_BY) != f"EtcdRestore/{restore.name}":
        before = None
        foreign.add(f"EtcdBackup {backup_name(restore)}")
    transfer = None if source or finished else api.get("Secret", namespace, restore_jobs.transfer_name(restore))
    if transfer and not is_owned(transfer, restore.uid):
        foreign.add(f"Secret {restore_jobs.transfer_name(restore)}")
    return Observation(
        now=now,
        image=own_image(api),
        snapshot=snapshot,
        problem=problem,
        pending=pending,
        resource=resource,
        cluster=cluster,
        refusal=refusal,
        refused_image=images.refusal(cluster, images.allowed()) if cluster and not refusal else "",
        rival=first_of(restore, api.list("EtcdRestore", namespace, "")) if restore.in_place and not finished else "",
        stopped=finished or _stopped(api, namespace, restore.cluster, selector),
        claims={name: _claim(each["metadata"]) for name, each in claims.items()},
        foreign=frozenset(foreign),
        source=source,
        check_log=api.log(namespace, source.pod, "check") if source and source.running and not finished else None,
        jobs={name: job for name, job in seen.items() if job},
        backup=before.get("status", {}) if before else None,
    )


def _claim(meta: Manifest) -> Claim:
    return Claim(meta["uid"], (meta.get("labels") or {}).get(UID_LABEL, ""), "deletionTimestamp" in meta)


def _unlisted_claims(
    api: Kube, cluster: api_cluster.Cluster, size: int, listed: Collection[str]
) -> dict[str, Manifest]:
    """PVCs without our labels that have the name of a member's."""
    missing = [name for each in range(size) if (name := f"data-{cluster.pod_name(each)}") not in listed]
    found = named(api, "PersistentVolumeClaim", cluster.namespace, missing) if missing else []
    return {each["metadata"]["name"]: each for each in found}


def _stopped(api: Kube, namespace: str, name: str, selector: str) -> bool:
    found = api.get("StatefulSet", namespace, name) or {}
    status = found.get("status", {})
    told = status.get("observedGeneration", 0) >= found.get("metadata", {}).get("generation", 0)
    if found.get("spec", {}).get("replicas") or status.get("replicas") or not told:
        return False
    return not api.list("Pod", namespace, selector)


def _found_jobs(api: Kube, restore: Restore, status: dict[str, Any]) -> dict[str, Manifest | None]:
    """Whatever has the name of a Job: of the one that hands out the snapshot, and of those on members' volumes."""
    names = [restore_jobs.source_name(restore)]
    names += [
        restore_jobs.member_name(restore, verb, ordinal)
        for verb in ("member", "putback", "tidy")
        for ordinal in range(status.get("size", 0))
    ]
    return {name: api.get("Job", restore.namespace, name) for name in names}


def _snapshot(api: Kube, restore: Restore) -> tuple[Snapshot | None, str, str]:
    """The snapshot; why there is none; the phase of its EtcdBackup, if that is not finished."""
    if not restore.backup:
        return restore.snapshot, _missing(api, restore, restore.snapshot), ""
    resource = api.get("EtcdBackup", restore.namespace, restore.backup)
    if resource is None:
        why = f"EtcdBackup {restore.backup} does not exist; name another one, or the location of the snapshot"
        return None, why, ""
    if "deletionTimestamp" in resource["metadata"]:
        return None, f"EtcdBackup {restore.backup} is being deleted; name another one", ""
    status = resource.get("status", {})
    match status.get("phase", "Pending"):
        case "Succeeded":
            snapshot = of_backup(resource)
            return snapshot, _missing(api, restore, snapshot), ""
        case "Failed":
            return None, f"EtcdBackup {restore.backup} failed; name another one. Its message: {status['message']}", ""
        case phase:
            return None, "", str(phase)


def _missing(api: Kube, restore: Restore, snapshot: Snapshot | None) -> str:
    if snapshot is None:
        return ""
    return missing(api, restore.namespace, snapshot.destination, snapshot.encryption_secret)


def _template(api: Kube, restore: Restore, finished: bool) -> tuple[Manifest | None, str]:
    """The EtcdCluster as it would be created, with all defaults; or why Kubernetes would refuse it."""
    if finished:
        return None, ""
    meta = {"namespace": restore.namespace, "name": restore.cluster}
    wanted = {"apiVersion": API_VERSION, "kind": "EtcdCluster", "metadata": meta, "spec": restore.template}
    try:
        return api.create(wanted, dry_run=True), ""
    except KubeError as error:
        if error.status not in (400, 422):
            raise
        return {**wanted, "metadata": {**meta, "uid": ""}, "spec": {"size": 0, "version": "3.0.0"}}, error.said
