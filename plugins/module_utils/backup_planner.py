"""What to do next for an EtcdBackup: a pure function, as planner.py is for an EtcdCluster."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from . import jobs
from .backup import API_VERSION, Backup
from .kube import Manifest
from .quantity import rounded
from .reporting import conditions, time_text
from .spec import Cluster

SOON, SETTLED = 1, 3600
_STARTING = timedelta(minutes=2)  # how long a pod may take to start before its problem is the reason of a failure
_DELETING = 300  # seconds for a Job that deletes a snapshot


class Phase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    DELETING = "Deleting"


class Step(StrEnum):
    IDLE = "idle"
    APPLY = "apply"  # make a Job
    TIDY = "tidy"  # remove Jobs that are done with


@dataclass(frozen=True)
class Observed:
    now: datetime
    image: str = ""  # the operator's own
    cluster: Cluster | None = None
    cluster_status: dict[str, Any] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)  # of the members' pods
    job: jobs.Job | None = None
    check_log: str = ""  # what etcdutl said
    cleanup: jobs.Job | None = None


@dataclass(frozen=True)
class Plan:
    phase: Phase
    reason: str
    message: str
    step: Step = Step.IDLE
    apply: tuple[Manifest, ...] = ()
    delete_jobs: tuple[str, ...] = ()
    result: dict[str, Any] = field(default_factory=dict)  # goes into the status
    requeue: int = SOON
    release: bool = False  # the finalizer's work is done

    @property
    def warning(self) -> bool:
        return self.phase is Phase.FAILED


def job_name(backup: Backup) -> str:
    return f"{backup.name}-backup"


def cleanup_name(backup: Backup) -> str:
    return f"{backup.name}-cleanup"


def plan(backup: Backup, seen: Observed, before: dict[str, Any]) -> Plan:
    """The next step; `before` is the status so far."""
    if backup.deleting:
        return _delete(backup, seen, before)
    if before.get("phase") in (Phase.SUCCEEDED, Phase.FAILED):  # once only
        return _tidy(backup, seen, Plan(Phase(before["phase"]), _reason(before), before.get("message", "")))
    if failure := before.get("failure"):
        return _clean(backup, seen, failure)
    if seen.job is None:
        return _start(backup, seen, before)
    return _follow(backup, seen, seen.job)


def _reason(before: dict[str, Any]) -> str:
    return "Succeeded" if before["phase"] == Phase.SUCCEEDED else "Failed"


def _start(backup: Backup, seen: Observed, before: dict[str, Any]) -> Plan:
    if before.get("startTime"):
        return _failing(backup, seen, "its Job was deleted", clean=True)
    cluster = seen.cluster
    if cluster is None:
        return _failed(f"there is no EtcdCluster {backup.cluster} in this namespace")
    members = _members(seen)
    if not members:
        if seen.now - backup.created > _STARTING:
            state = seen.cluster_status.get("phase", "Pending")
            return _failed(f"no member of EtcdCluster {backup.cluster} is healthy; it is {state}")
        return Plan(Phase.PENDING, "WaitingForCluster", f"Waiting for EtcdCluster {backup.cluster} to serve.")
    message = f"Taking a snapshot of {backup.cluster} from {members[0]}."
    return Plan(Phase.RUNNING, "Started", message, Step.APPLY, apply=(_job(backup, cluster, seen, members),))


def _members(seen: Observed) -> list[str]:
    """The healthy voters' pods, followers first."""
    members = [m for m in seen.cluster_status.get("members", []) if m.get("healthy") and m["role"] != "learner"]
    return [member["name"] for member in sorted(members, key=lambda m: (m["role"] == "leader", m["name"]))]


def _follow(backup: Backup, seen: Observed, job: jobs.Job) -> Plan:
    begun = {"startTime": time_text(job.started)}
    if job.complete:
        return _succeeded(backup, seen, job)
    if job.failed:
        saved = job.ended.get("save")
        # What reported its own failure has left nothing.
        clean = saved is None or saved.code == 0 or "error" not in saved.report
        return _failing(backup, seen, job.why, clean=clean)
    if job.problem and not job.ended and seen.now - job.started > _STARTING:
        return _failing(backup, seen, job.problem, clean=True)
    doing = "Checking the snapshot." if "save" in job.ended else f"Taking a snapshot of {backup.cluster}."
    trouble = f" {job.problem}." if job.problem else ""
    return Plan(Phase.RUNNING, "Running", f"{doing}{trouble}", result=begun)


def _succeeded(backup: Backup, seen: Observed, job: jobs.Job) -> Plan:
    saved = job.ended["save"].report if "save" in job.ended else {}
    try:
        checked = json.loads(seen.check_log)
        revision, keys = checked["revision"], checked["totalKey"]
    except (ValueError, KeyError):
        return _failing(backup, seen, f"etcdutl's answer can't be read: {seen.check_log[:200]}", clean=True)
    if "sha256" not in saved:
        return _failing(backup, seen, "the Job told nothing about the snapshot", clean=True)
    result = {
        "startTime": time_text(job.started),
        "completionTime": time_text(seen.now),
        "location": backup.location,
        "revision": revision,
        "keys": keys,
        "hash": f"{checked['hash']:x}",
        "size": rounded(saved["size"]),
        "bytes": saved["size"],
        "sha256": saved["sha256"],
        "etcdVersion": saved["version"],
        "clusterID": saved["cluster_id"],
        "member": saved["member"],
        "seconds": str(saved["seconds"]),
    }
    message = f"Revision {revision} of {backup.cluster}, {result['size']}, at {backup.location}."
    return Plan(Phase.SUCCEEDED, "Succeeded", message, result=result)


def _failing(backup: Backup, seen: Observed, why: str, *, clean: bool) -> Plan:
    if not clean:
        return _failed(why)
    return _clean(backup, seen, why)


def _clean(backup: Backup, seen: Observed, why: str) -> Plan:
    """Remove what a failed backup has left, then say that it failed."""
    noted = {"failure": why, "startTime": time_text(seen.now if seen.job is None else seen.job.started)}
    if seen.cleanup is None:
        message = f"It failed: {why}. Removing what it left."
        stop = (job_name(backup),) if seen.job and not seen.job.finished else ()
        return Plan(Phase.RUNNING, "CleaningUp", message, Step.APPLY, (_cleanup(backup, seen),), stop, noted)
    if seen.cleanup.complete:
        return _failed(why)
    trouble = seen.cleanup.why if seen.cleanup.failed else seen.cleanup.problem
    if seen.cleanup.failed or (trouble and seen.now - seen.cleanup.started > _STARTING):
        return _failed(f"{why}; and what it may have left at {backup.location} could not be removed: {trouble}")
    return Plan(Phase.RUNNING, "CleaningUp", f"It failed: {why}. Removing what it left.", result=noted)


def _failed(why: str) -> Plan:
    return Plan(Phase.FAILED, "Failed", f"{why[0].upper()}{why[1:].rstrip('.')}.", result={"failure": why})


def _tidy(backup: Backup, seen: Observed, done: Plan) -> Plan:
    """Finished: the Jobs have told all they know."""
    left = [name for name, job in ((job_name(backup), seen.job), (cleanup_name(backup), seen.cleanup)) if job]
    if not left:
        return Plan(done.phase, done.reason, done.message, requeue=SETTLED)
    return Plan(done.phase, done.reason, done.message, Step.TIDY, delete_jobs=tuple(left))


def _delete(backup: Backup, seen: Observed, before: dict[str, Any]) -> Plan:
    """The finalizer: nothing is left running, and the data goes if the user said so."""
    wanted = before.get("startTime") and (backup.delete_data or before.get("phase") != Phase.SUCCEEDED)
    if not wanted or backup.let_go or (seen.cleanup and seen.cleanup.complete):
        return Plan(Phase.DELETING, "Deleted", "Nothing is left to do.", release=True)
    if seen.job is not None and not seen.job.finished:
        return Plan(Phase.DELETING, "Stopping", "Stopping its Job.", Step.TIDY, delete_jobs=(job_name(backup),))
    if seen.cleanup is None:
        message = f"Deleting {backup.location}."
        return Plan(Phase.DELETING, "Deleting", message, Step.APPLY, (_cleanup(backup, seen),))
    if seen.cleanup.failed:
        message = (
            f"{backup.location} can't be deleted: {seen.cleanup.why}. It is tried again; to delete this EtcdBackup "
            f"without its data, annotate it with etcdops.dev/let-go=true."
        )
        names = (cleanup_name(backup),)
        return Plan(Phase.DELETING, "CannotDelete", message, Step.TIDY, delete_jobs=names, requeue=30)
    trouble = f" {seen.cleanup.problem}." if seen.cleanup.problem else ""
    return Plan(Phase.DELETING, "Deleting", f"Deleting {backup.location}.{trouble}")


def _owner(backup: Backup) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": "EtcdBackup",
        "name": backup.name,
        "uid": backup.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _labels(backup: Backup) -> dict[str, str]:
    # Not etcdops.dev/cluster: that finds members.
    return {"etcdops.dev/backup": backup.name}


def _job(backup: Backup, cluster: Cluster, seen: Observed, members: list[str]) -> Manifest:
    """First the stream, then etcdutl's own look at what came of it."""
    needs = (
        jobs.etcd_client(cluster, members)
        + jobs.store(backup.destination)
        + jobs.encryption(backup.encryption_secret)
        + jobs.scratch()
    )
    # etcdutl reads the plain snapshot where it is, if it can.
    where = jobs.path_in_pod(backup.destination, backup.file)
    plain = backup.destination.claim is not None and not backup.compress and not backup.encryption_secret
    settings = {"SNAPSHOT_DEST": where, "SNAPSHOT_COMPRESS": str(backup.compress).lower(), "SNAPSHOT_CHECK": "false"}
    settings |= {} if plain else {"SNAPSHOT_COPY": jobs.SNAPSHOT}
    save = jobs.worker("save", seen.image, "etcd_backup", needs + jobs.Parts(settings))
    looks = jobs.store(backup.destination) if plain else jobs.scratch()
    arguments = ["snapshot", "status", where if plain else jobs.SNAPSHOT, "--write-out=json"]
    check = jobs.etcdutl("check", cluster.image, arguments, jobs.Parts(mounts=looks.mounts))
    order = jobs.Order(
        namespace=backup.namespace,
        name=job_name(backup),
        owner=_owner(backup),
        containers=(save, check),
        volumes=needs.volumes,
        deadline=int(backup.deadline.total_seconds()),
        labels=_labels(backup),
        affinity=jobs.near(seen.nodes.get(members[0], "")),
        pod=cluster.pod,
    )
    return jobs.manifest(order)


def _cleanup(backup: Backup, seen: Observed) -> Manifest:
    needs = jobs.store(backup.destination)
    where = jobs.path_in_pod(backup.destination, backup.file)
    work = jobs.worker("delete", seen.image, "etcd_backup_delete", needs + jobs.Parts({"SNAPSHOT_DEST": where}))
    order = jobs.Order(
        namespace=backup.namespace,
        name=cleanup_name(backup),
        owner=_owner(backup),
        containers=(work,),
        volumes=needs.volumes,
        deadline=_DELETING,
        labels=_labels(backup),
        retries=2,
    )
    return jobs.manifest(order)


def status(backup: Backup, done: Plan, before: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The whole status."""
    said = (
        ("Complete", str(done.phase is Phase.SUCCEEDED), done.reason, done.message),
        ("Failed", str(done.phase is Phase.FAILED), done.reason, done.message),
    )
    return {
        "phase": str(done.phase),
        "message": done.message,
        "observedGeneration": backup.generation,
        "destination": str(backup.destination),
        "requestedBy": before.get("requestedBy") or backup.requested_by,
        **done.result,
        "conditions": conditions(said, backup.generation, before.get("conditions", []), now),
    }
