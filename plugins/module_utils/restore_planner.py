"""What to do next for an EtcdRestore: a pure function, as planner.py is for an EtcdCluster.

First the snapshot is fetched and checked; until then nothing is touched. In place, a snapshot of what is there comes
next, and the members are stopped. Then every member's data is made from the same snapshot, under a token of this
restore's own, and only when all of it is there does the cluster start, with sealed configurations: no member can start
without its data. What a volume held before stays on it until the cluster runs, and is put back when the restore fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from . import jobs, restore_jobs
from .backup import API_VERSION, REQUESTED_BY
from .kube import Manifest
from .manifests import claim_manifest
from .reporting import conditions, time_text
from .restore import Restore, Snapshot
from .spec import HELD_BY, MADE_BY, RESTORED, Cluster

SOON, SETTLED = 1, 3600
_STARTING = timedelta(minutes=2)
_RUNNING = timedelta(minutes=10)  # for the restored cluster to serve


class Phase(StrEnum):
    PENDING = "Pending"
    VERIFYING = "Verifying"
    SNAPSHOTTING = "Snapshotting"
    STOPPING = "Stopping"
    RESTORING = "Restoring"
    STARTING = "Starting"
    PUTTING_BACK = "PuttingBack"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Step(StrEnum):
    """Each has a file in roles/etcdrestore/tasks/steps/."""

    IDLE = "idle"
    FETCH = "fetch"  # the Job that fetches and hands out the snapshot, and certificates for that
    CREATE = "create"  # objects that are made once
    HOLD = "hold"  # mark the EtcdCluster: its members stop, or don't start
    RELEASE = "release"  # let it start
    TIDY = "tidy"  # remove what is done with


_FINISHED = (Phase.SUCCEEDED, Phase.FAILED)


@dataclass(frozen=True)
class Observed:
    now: datetime
    image: str = ""  # the operator's own
    snapshot: Snapshot | None = None
    problem: str = ""  # why there is no snapshot to restore
    resource: Manifest | None = None  # the EtcdCluster
    cluster: Cluster | None = None  # the same, or what would be made
    pods: int = 0  # of the members
    claims: Mapping[str, str] = field(default_factory=dict)  # name: the uid of the EtcdCluster that it was made for
    source: jobs.Job | None = None
    check_log: str = ""
    jobs: Mapping[str, jobs.Job] = field(default_factory=dict)  # by name, of members
    backup: dict[str, Any] | None = None  # the status of the EtcdBackup of what was there
    refusal: str = ""  # why Kubernetes would not take the new EtcdCluster

    @property
    def annotations(self) -> dict[str, str]:
        found: dict[str, str] = (self.resource or {}).get("metadata", {}).get("annotations") or {}
        return found

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = (self.resource or {}).get("status", {})
        return found


@dataclass(frozen=True)
class Plan:
    phase: Phase
    reason: str
    message: str
    step: Step = Step.IDLE
    create: tuple[Manifest, ...] = ()
    annotations: dict[str, str | None] = field(default_factory=dict)
    forget_id: bool = False  # the EtcdCluster's clusterID: it gets another
    delete_jobs: tuple[str, ...] = ()
    result: dict[str, Any] = field(default_factory=dict)  # goes into the status
    requeue: int = SOON
    release: bool = False  # the finalizer's work is done


def plan(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    """The next step; `before` is the status so far."""
    phase = Phase(before.get("phase", Phase.PENDING))
    if phase in _FINISHED:
        return _finished(restore, seen, before, phase)
    if restore.deleting:
        return _deleted(restore, seen, before, phase)
    ending = phase in (Phase.PUTTING_BACK, Phase.STARTING)
    if not ending and (why := seen.problem or _impossible(restore, seen, phase) or _versions(seen, before)):
        return _fail(restore, seen, before, why)
    next_step = {
        Phase.SNAPSHOTTING: _snapshotting,
        Phase.STOPPING: _stopping,
        Phase.RESTORING: _restoring,
        Phase.STARTING: _starting,
        Phase.PUTTING_BACK: _put_back,
    }
    return next_step.get(phase, _verifying)(restore, seen, before)


def _impossible(restore: Restore, seen: Observed, phase: Phase) -> str:
    """Why it can't be done."""
    cluster = seen.cluster
    if cluster is None:
        return f"there is no EtcdCluster {restore.cluster} to restore in place"
    if cluster.storage.type != "Persistent":
        return "a snapshot can only be restored onto volumes: storage.type must be Persistent"
    if seen.refusal:
        return f"Kubernetes refuses the new EtcdCluster: {seen.refusal}"
    return _not_in_place(restore, cluster, phase) if restore.in_place else _not_new(restore, seen)


def _not_new(restore: Restore, seen: Observed) -> str:
    if seen.resource and seen.annotations.get(MADE_BY) != restore.uid:
        return (
            f"EtcdCluster {restore.cluster} exists already and is not touched; choose another name, or restore in "
            "place (spec.inPlace)"
        )
    if not seen.resource and seen.claims:
        return f"{', '.join(sorted(seen.claims))} hold data of an earlier cluster of this name; delete them first"
    return ""


def _not_in_place(restore: Restore, cluster: Cluster, phase: Phase) -> str:
    if phase not in (Phase.PENDING, Phase.VERIFYING, Phase.SNAPSHOTTING):
        return ""
    if cluster.size == 0:
        return f"EtcdCluster {restore.cluster} has size 0; set the size that it shall have"
    if cluster.deleting:
        return f"EtcdCluster {restore.cluster} is being deleted"
    if cluster.held_by:
        return f"EtcdCluster {restore.cluster} is being restored by {cluster.held_by}"
    return ""


def _versions(seen: Observed, before: dict[str, Any]) -> str:
    """etcd reads data of its own minor version and of the one before."""
    cluster, known = seen.cluster, (seen.snapshot.version if seen.snapshot else "") or before.get("etcdVersion", "")
    if not known or cluster is None:
        return ""
    old, new = int(known.split(".")[1]), int(cluster.version.split(".")[1])
    if new in (old, old + 1):
        return ""
    return f"a snapshot of etcd {known} can't be restored into {cluster.version}; use 3.{old} or 3.{old + 1}"


# -- before anything is touched


def _verifying(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    assert seen.snapshot  # noqa: S101
    assert seen.cluster  # noqa: S101
    facts = {"startTime": before.get("startTime") or time_text(seen.now), "source": seen.snapshot.location}
    verifying = Plan(Phase.VERIFYING, "Verifying", f"Fetching and checking {seen.snapshot.location}.", result=facts)
    if seen.source is None:
        made = restore_jobs.source(restore, seen.snapshot, seen.cluster, seen.image)
        return replace(verifying, step=Step.FETCH, create=(made,))
    job = seen.source
    if job.failed or (job.problem and not job.ended and seen.now - job.started > _STARTING):
        return _fail(restore, seen, before, f"{seen.snapshot.location} can't be restored: {job.why}")
    checked = _checked(seen.check_log)
    if not job.running or not checked:
        trouble = f" {job.problem}." if job.problem else ""
        return replace(verifying, message=f"{verifying.message}{trouble}")
    return _verified(restore, seen, before, facts | checked)


def _checked(log: str) -> dict[str, Any]:
    """What etcdutl said of the snapshot; nothing yet, perhaps."""
    try:
        said = json.loads(log)
        found = {"revision": said["revision"], "keys": said["totalKey"], "hash": f"{said['hash']:x}"}
    except (ValueError, KeyError):
        return {}
    return found | ({"etcdVersion": said["version"]} if said.get("version") else {})


def _verified(restore: Restore, seen: Observed, before: dict[str, Any], found: dict[str, Any]) -> Plan:
    """The snapshot is sound: on to the cluster."""
    if why := _versions(replace(seen, snapshot=None), found):
        return _fail(restore, seen, before | found, why)
    if not restore.in_place:
        return _new(restore, seen, before | found, found)
    if restore.take_snapshot and seen.status.get("phase") in ("Running", "Degraded", "Scaling", "Repairing"):
        return _also(_snapshot_first(restore, seen), found)
    return _also(_hold(restore, seen), found)


def _also(planned: Plan, facts: dict[str, Any]) -> Plan:
    return replace(planned, result=facts | planned.result)


def _snapshot_first(restore: Restore, seen: Observed) -> Plan:
    message = f"The snapshot is sound. First, one of what {restore.cluster} holds now."
    wanted = (_backup(restore, seen),) if seen.backup is None else ()
    return Plan(Phase.SNAPSHOTTING, "Snapshotting", message, Step.CREATE if wanted else Step.IDLE, wanted)


def backup_name(restore: Restore) -> str:
    return f"{restore.name}-before"


def _backup(restore: Restore, seen: Observed) -> Manifest:
    """Of what is there, to where the source is kept."""
    assert seen.snapshot  # noqa: S101
    destination, secret = seen.snapshot.destination, seen.snapshot.encryption_secret
    if destination.claim:
        where: Manifest = {"claim": {"name": destination.claim.name}}
        where["claim"] |= {"path": destination.claim.path} if destination.claim.path else {}
    else:
        s3 = destination.s3
        assert s3  # noqa: S101
        named = {
            "bucket": s3.bucket,
            "prefix": s3.prefix,
            "endpoint": s3.endpoint,
            "region": s3.region,
            "credentialsSecret": s3.credentials_secret,
            "caSecret": s3.ca_secret,
        }
        where = {"s3": {key: value for key, value in named.items() if value} | {"pathStyle": s3.path_style}}
    spec: Manifest = {"cluster": restore.cluster, "destination": where}
    if secret:
        spec["encryption"] = {"secret": secret}
    # No owner: it outlives the restore.
    meta = {
        "namespace": restore.namespace,
        "name": backup_name(restore),
        "annotations": {REQUESTED_BY: f"EtcdRestore/{restore.name}"},
    }
    return {"apiVersion": API_VERSION, "kind": "EtcdBackup", "metadata": meta, "spec": spec}


def _snapshotting(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    if seen.backup is None:
        return _snapshot_first(restore, seen)
    state = seen.backup.get("phase")
    if state == "Succeeded":
        return _also(_hold(restore, seen), {"snapshot": backup_name(restore)})
    if state == "Failed":
        why = (
            f"the snapshot of what is there failed, so nothing was touched: {seen.backup.get('message', '')} To go on "
            "without it, set spec.inPlace.snapshot to Skip in another EtcdRestore"
        )
        return _fail(restore, seen, before, why)
    return _snapshot_first(restore, seen)


# -- the data


def _hold(restore: Restore, seen: Observed) -> Plan:
    """Stop every member."""
    annotations: dict[str, str | None] = {HELD_BY: restore.name}
    result = {"size": seen.cluster.size} if seen.cluster else {}
    message = f"Stopping every member of {restore.cluster}."
    return Plan(Phase.STOPPING, "Stopping", message, Step.HOLD, annotations=annotations, result=result)


def _stopping(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    if seen.annotations.get(HELD_BY) != restore.name:
        return _hold(restore, seen)
    if seen.status.get("phase") != "Restoring" or seen.pods:
        return Plan(Phase.STOPPING, "Stopping", f"Waiting for {seen.pods} members of {restore.cluster} to stop.")
    return _restoring(restore, seen, before)


def _new(restore: Restore, seen: Observed, before: dict[str, Any], found: dict[str, Any]) -> Plan:
    """The EtcdCluster of a template, held until its members have their data."""
    assert seen.cluster  # noqa: S101
    if seen.resource is None:
        meta = {
            "namespace": restore.namespace,
            "name": restore.cluster,
            "annotations": {HELD_BY: restore.name, MADE_BY: restore.uid},
        }
        made = {"apiVersion": API_VERSION, "kind": "EtcdCluster", "metadata": meta, "spec": restore.template}
        message = f"The snapshot is sound. Making EtcdCluster {restore.cluster}."
        result = found | {"size": seen.cluster.size}
        return Plan(Phase.VERIFYING, "Creating", message, Step.CREATE, (made,), result=result)
    found = found | {"size": seen.cluster.size}
    planned = _restoring(restore, seen, before | found)
    return _also(planned, found)


def _restoring(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    cluster, size = seen.cluster, before["size"]
    assert cluster  # noqa: S101
    if seen.source is None or not seen.source.running:
        return _fail(restore, seen, before, "the Job that hands out the snapshot has ended")
    made = [seen.jobs.get(restore_jobs.member_name(restore, "member", each)) for each in range(size)]
    failed = [job for job in made if job and job.failed]
    if failed:
        return _fail(restore, seen, before, f"a member's data could not be made: {failed[0].why}")
    if all(job and job.complete for job in made):
        return _release(restore, seen, before)
    done = sum(bool(job and job.complete) for job in made)
    troubles = " ".join(sorted({f"{job.problem}." for job in made if job and job.problem}))
    message = (
        f"Making the data of {size} members from revision {before['revision']}; {done} are done. {troubles}".strip()
    )
    restoring = Plan(Phase.RESTORING, "Restoring", message)
    missing = [each for each in range(size) if made[each] is None]
    if not missing:
        return restoring
    claims = [claim_manifest(cluster, cluster.pod_name(each)) for each in missing]
    wanted = [claim for claim in claims if claim["metadata"]["name"] not in seen.claims]
    source = restore_jobs.Source(seen.source.address, size, seen.image)
    wanted += [restore_jobs.member(restore, cluster, each, source) for each in missing]
    return replace(restoring, step=Step.CREATE, create=tuple(wanted))


def _release(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    """All the data is there: let the cluster start with it."""
    annotations: dict[str, str | None] = {HELD_BY: None, MADE_BY: restore.uid, RESTORED: str(before["size"])}
    message = f"The data is there; starting {before['size']} members of {restore.cluster}."
    result = {"releaseTime": time_text(seen.now), "replacedClusterID": seen.status.get("clusterID")}
    return Plan(
        Phase.STARTING,
        "Starting",
        message,
        Step.RELEASE,
        annotations=annotations,
        forget_id=True,
        result=result if "releaseTime" not in before else {},
    )


def _starting(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    known, old = seen.status.get("clusterID"), before.get("replacedClusterID")
    held = HELD_BY in seen.annotations or seen.annotations.get(MADE_BY) != restore.uid
    if seen.resource is None:
        return _failed(f"EtcdCluster {restore.cluster} was deleted")
    if held or (known and known == old):  # not let go yet; or somebody wrote the old ID back
        return _release(restore, seen, before)
    if known and seen.status.get("phase") == "Running":
        result = {"completionTime": time_text(seen.now), "clusterID": known}
        message = f"{restore.cluster} runs with the data of revision {before['revision']}, as cluster {known}."
        return Plan(Phase.SUCCEEDED, "Succeeded", message, result=result)
    message = f"Waiting for {restore.cluster} to serve: {seen.status.get('message', '')}"
    if seen.now - datetime.fromisoformat(before["releaseTime"]) > _RUNNING:
        message = f"{message} It takes long; what the volumes held before is still on them."
    return Plan(Phase.STARTING, "Starting", message)


# -- the end


def _fail(restore: Restore, seen: Observed, before: dict[str, Any], why: str) -> Plan:
    """In place, what was there comes back first."""
    if restore.in_place and seen.annotations.get(HELD_BY) == restore.name:
        return _put_back(restore, seen, before | {"failure": why})
    return _failed(why)


def _put_back(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    size, cluster, why = before.get("size", 0), seen.cluster, before["failure"]
    message = f"It failed: {why.rstrip('.')}. Putting back what {restore.cluster} held."
    going = Plan(Phase.PUTTING_BACK, "PuttingBack", message, result={"failure": why})
    if cluster is None or seen.pods:  # while they were stopping nothing was touched
        return _let_go(restore, seen, why, going)
    names = {each: restore_jobs.member_name(restore, "putback", each) for each in range(size)}
    touched = [each for each in names if f"data-{cluster.pod_name(each)}" in seen.claims]
    running = [name for name in _member_jobs(restore, size) if name in seen.jobs and not seen.jobs[name].finished]
    if running:
        return replace(going, step=Step.TIDY, delete_jobs=tuple(running))
    missing = [each for each in touched if names[each] not in seen.jobs]
    if missing:
        wanted = [restore_jobs.after(restore, cluster, "putback", each, seen.image) for each in missing]
        return replace(going, step=Step.CREATE, create=tuple(wanted))
    back = [seen.jobs[names[each]] for each in touched]
    if all(job.complete for job in back):
        return _let_go(restore, seen, why, going)
    if failed := [job for job in back if job.failed]:
        message = f"{message} That failed too: {failed[0].why}. It is tried again."
        return replace(going, message=message, step=Step.TIDY, delete_jobs=tuple(names.values()), requeue=30)
    return going


def _let_go(restore: Restore, seen: Observed, why: str, going: Plan) -> Plan:
    if seen.annotations.get(HELD_BY) == restore.name:
        return replace(going, step=Step.HOLD, annotations={HELD_BY: None})
    return _failed(f"{why.rstrip('.')}. {restore.cluster} has what it held before")


def _failed(why: str) -> Plan:
    return Plan(Phase.FAILED, "Failed", f"{why[0].upper()}{why[1:].rstrip('.')}.", result={"failure": why})


def _member_jobs(restore: Restore, size: int) -> list[str]:
    return [restore_jobs.member_name(restore, "member", each) for each in range(size)]


def _finished(restore: Restore, seen: Observed, before: dict[str, Any], phase: Phase) -> Plan:
    """Once only. What is left to do is to remove what was needed for it."""
    done = Plan(phase, str(phase), before.get("message", ""), requeue=SETTLED, release=restore.deleting)
    size, cluster = before.get("size", 0), seen.cluster
    left = [name for name in seen.jobs if "-tidy-" not in name]
    if seen.source:
        left.append(restore_jobs.source_name(restore))
    if left:
        return replace(done, step=Step.TIDY, delete_jobs=tuple(left), requeue=SOON, release=False)
    if phase is Phase.FAILED or cluster is None or before.get("tidied"):
        return done
    names = {each: restore_jobs.member_name(restore, "tidy", each) for each in range(size)}
    there = [each for each in names if f"data-{cluster.pod_name(each)}" in seen.claims]
    missing = [each for each in there if names[each] not in seen.jobs]
    if missing:
        wanted = [restore_jobs.after(restore, cluster, "tidy", each, seen.image) for each in missing]
        return replace(done, step=Step.CREATE, create=tuple(wanted), requeue=SOON, release=False)
    if not all(seen.jobs[names[each]].finished for each in there):
        return replace(done, requeue=SOON, release=False)
    every = tuple(names[each] for each in there)
    return replace(done, step=Step.TIDY, delete_jobs=every, result={"tidied": True}, requeue=SOON, release=False)


def _deleted(restore: Restore, seen: Observed, before: dict[str, Any], phase: Phase) -> Plan:
    """Deleted half-way: as if it had failed."""
    if phase is Phase.STARTING:
        return replace(_starting(restore, seen, before), release=HELD_BY not in seen.annotations)
    planned = _fail(restore, seen, before, "the EtcdRestore was deleted before it was done")
    return replace(planned, release=planned.phase is Phase.FAILED)


def status(restore: Restore, done: Plan, before: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The whole status."""
    said = (
        ("Complete", str(done.phase is Phase.SUCCEEDED), done.reason, done.message),
        ("Failed", str(done.phase is Phase.FAILED), done.reason, done.message),
    )
    return {
        "phase": str(done.phase),
        "message": done.message,
        "observedGeneration": restore.generation,
        "cluster": restore.cluster,
        **done.result,
        "conditions": conditions(said, restore.generation, before.get("conditions", []), now),
    }
