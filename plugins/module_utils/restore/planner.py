"""What to do next for an EtcdRestore: a pure function, as planner.py is for an EtcdCluster.

First the snapshot is fetched and checked; until then nothing is touched. In place, a snapshot of what is there comes
next, and the members are stopped. Then every member's data is made from the same snapshot, under a token of this
restore's own, and only when all of it is there does the cluster start, with sealed configurations: no member can start
without its data. What a volume held before stays on it until the cluster runs, and is put back when the restore fails.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from ..api import backup
from ..api.backup import API_VERSION
from ..api.cluster import HELD_BY, MADE_BY, RESTORED, Cluster
from ..api.restore import Restore
from ..backup import jobs
from ..backup.planner import healthy_members
from ..cluster.manifests import claim_manifest
from ..kube.conditions import sentence, time_text
from ..kube.manifest import Manifest
from . import jobs as restore_jobs
from .plan import BEFORE, FINISHED, SETTLED, SOON, Observed, Phase, Plan, Step

_RUNNING = timedelta(minutes=10)  # for the restored cluster to serve


def plan(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    """The next step; `before` is the status so far."""
    phase = Phase(before.get("phase", Phase.PENDING))
    if phase in FINISHED:
        return _finished(restore, seen, before, phase)
    if restore.deleting:
        return _deleted(restore, seen, before, phase)
    if why := _impossible(restore, seen, before, phase):
        return _fail(restore, seen, before, why)
    next_step = {
        Phase.SNAPSHOTTING: _snapshotting,
        Phase.STOPPING: _stopping,
        Phase.RESTORING: _restoring,
        Phase.STARTING: _starting,
        Phase.PUTTING_BACK: _put_back,
    }
    return next_step.get(phase, _verifying)(restore, seen, before)


def _impossible(restore: Restore, seen: Observed, before: dict[str, Any], phase: Phase) -> str:
    """Why it can't be done."""
    cluster = seen.cluster
    if phase in (Phase.PUTTING_BACK, Phase.STARTING):
        return ""
    if seen.problem and phase in BEFORE:
        return seen.problem
    if cluster is None:
        return f"there is no EtcdCluster {restore.cluster} to restore in place"
    if cluster.storage.type != "Persistent":
        return "a snapshot can only be restored onto volumes: storage.type must be Persistent"
    if seen.refusal:
        return f"Kubernetes refuses the new EtcdCluster: {seen.refusal}"
    why = _not_in_place(restore, cluster, phase) if restore.in_place else _not_new(restore, seen)
    known = before.get("etcdVersion") or (seen.snapshot.version if seen.snapshot else "")
    return why or _versions(known, cluster)


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
    if phase not in BEFORE:
        return ""
    if cluster.size == 0:
        return f"EtcdCluster {restore.cluster} has size 0; set the size that it shall have"
    if cluster.deleting:
        return f"EtcdCluster {restore.cluster} is being deleted"
    if cluster.held_by:
        return f"EtcdCluster {restore.cluster} is being restored by {cluster.held_by}"
    return ""


def _versions(known: str, cluster: Cluster) -> str:
    """etcd reads data of its own minor version and of the one before."""
    if not known:
        return ""
    old, new = _minor(known), _minor(cluster.version)
    if new in (old, old + 1):
        return ""
    return f"a snapshot of etcd {known} can't be restored into {cluster.version}; use 3.{old} or 3.{old + 1}"


def _minor(version: str) -> int:
    return int(version.split(".")[1])


# -- before anything is touched


def _verifying(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    assert seen.snapshot  # noqa: S101
    assert seen.cluster  # noqa: S101
    facts = {"startTime": before.get("startTime") or time_text(seen.now), "source": seen.snapshot.location}
    verifying = Plan(Phase.VERIFYING, "Verifying", f"Fetching and checking {seen.snapshot.location}.", result=facts)
    if seen.source is None:
        near = next(iter(healthy_members(seen.status)), "") if restore.in_place else ""
        made = restore_jobs.source(restore, seen.snapshot, seen.cluster, seen.image, near)
        return replace(verifying, step=Step.FETCH, create=(made,))
    job = seen.source
    if job.failed or job.is_stuck(seen.now):
        why = jobs.in_words(seen.snapshot.destination, job.why)
        return _fail(restore, seen, before, f"{seen.snapshot.location} can't be restored: {why}")
    checked = jobs.snapshot_status(seen.check_log)
    if not job.running or not checked:
        return replace(verifying, message=f"{verifying.message}{job.trouble}", requeue=jobs.patience(job, seen.now))
    # Before 3.6 a snapshot does not know its version.
    known = checked.get("etcdVersion") or ("3.5" if _minor(seen.cluster.version) > 5 else "")
    if why := _versions(seen.snapshot.version or known, seen.cluster):
        return _fail(restore, seen, before, why)
    found = facts | checked
    planned = _in_place(restore, seen) if restore.in_place else _new(restore, seen, before | found)
    return replace(planned, result=found | planned.result)


def _in_place(restore: Restore, seen: Observed) -> Plan:
    """The snapshot is sound. What is there is saved first, if it can be."""
    if restore.take_snapshot and healthy_members(seen.status):
        return _snapshot_first(restore, seen)
    return _hold(restore, seen)


def _snapshot_first(restore: Restore, seen: Observed) -> Plan:
    message = f"The snapshot is sound. First, one of what {restore.cluster} holds now."
    wanted = (_backup(restore, seen),) if seen.backup is None else ()
    step = Step.CREATE if wanted else Step.IDLE
    return Plan(Phase.SNAPSHOTTING, "Snapshotting", message, step, wanted, requeue=2)


def backup_name(restore: Restore) -> str:
    """No other EtcdRestore of that name can take it for its own."""
    return f"{restore.name}-before-{restore.uid[:8]}"


def _backup(restore: Restore, seen: Observed) -> Manifest:
    """Of what is there, to where the source is kept."""
    assert seen.snapshot  # noqa: S101
    spec: Manifest = {"cluster": restore.cluster, "destination": seen.snapshot.beside}
    if seen.snapshot.encryption_secret:
        spec["encryption"] = {"secret": seen.snapshot.encryption_secret}
    return backup.manifest(restore.namespace, backup_name(restore), f"EtcdRestore/{restore.name}", spec)


def _snapshotting(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    state = (seen.backup or {}).get("phase")
    if state == "Succeeded":
        held = _hold(restore, seen)
        return replace(held, result=held.result | {"snapshot": backup_name(restore)})
    if state == "Failed":
        said = (seen.backup or {}).get("message", "")
        why = (
            f"the snapshot of what is there failed, so nothing was touched: {said} To go on without it, set "
            "spec.inPlace.snapshot to Skip in another EtcdRestore"
        )
        return _fail(restore, seen, before, why)
    return _snapshot_first(restore, seen)


# -- the data


def _hold(restore: Restore, seen: Observed) -> Plan:
    """Stop every member."""
    result = {"size": seen.cluster.size} if seen.cluster else {}
    message = f"Stopping every member of {restore.cluster}."
    return Plan(Phase.STOPPING, "Stopping", message, Step.HOLD, annotations={HELD_BY: restore.name}, result=result)


def _stopping(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    if not seen.held_by(restore):
        return _hold(restore, seen)
    if not seen.at_rest(restore):
        return Plan(Phase.STOPPING, "Stopping", f"Waiting for the members of {restore.cluster} to stop.")
    return _restoring(restore, seen, before)


def _new(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    """The EtcdCluster of a template, held until its members have their data."""
    assert seen.cluster  # noqa: S101
    size = {"size": seen.cluster.size}
    if seen.resource is not None:
        planned = _restoring(restore, seen, before | size)
        return replace(planned, result=size | planned.result)
    annotations = {HELD_BY: restore.name, MADE_BY: restore.uid}
    meta = {"namespace": restore.namespace, "name": restore.cluster, "annotations": annotations}
    made = {"apiVersion": API_VERSION, "kind": "EtcdCluster", "metadata": meta, "spec": restore.template}
    message = f"The snapshot is sound. Making EtcdCluster {restore.cluster}."
    return Plan(Phase.VERIFYING, "Creating", message, Step.CREATE, (made,), result=size)


def _restoring(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    cluster, size = seen.cluster, before["size"]
    assert cluster  # noqa: S101
    if not seen.held_by(restore):  # somebody removed the mark
        return replace(_hold(restore, seen), result={})
    made = [seen.jobs.get(name) for name in _member_jobs(restore, size)]
    if all(job and job.complete for job in made):
        return _release(restore, seen, before)
    if failed := [job for job in made if job and job.failed]:
        return _fail(restore, seen, before, f"a member's data could not be made: {failed[0].why}")
    if seen.source is None or not seen.source.running:
        return _fail(restore, seen, before, "the Job that hands out the snapshot has ended")
    done = sum(bool(job and job.complete) for job in made)
    troubles = " ".join(sorted({job.trouble.strip() for job in made if job and job.problem}))
    message = f"Making the data of {size} members from revision {before['revision']}; {done} are done. {troubles}"
    restoring = Plan(Phase.RESTORING, "Restoring", message.strip())
    missing = [each for each in range(size) if made[each] is None]
    if not missing:
        return replace(restoring, requeue=max(jobs.patience(job, seen.now) for job in made if job))
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
    if restore.in_place and seen.held_by(restore):
        return _put_back(restore, seen, before | {"failure": why})
    if seen.resource and not restore.in_place and seen.annotations.get(MADE_BY) == restore.uid:
        why = f"{why.rstrip('.')}. EtcdCluster {restore.cluster} was made and has no data; delete it"
    return _failed(why)


def _put_back(restore: Restore, seen: Observed, before: dict[str, Any]) -> Plan:
    why, done = before["failure"], before.get("putBack", False)
    message = f"It failed: {why.rstrip('.')}. Putting back what {restore.cluster} held."
    going = Plan(Phase.PUTTING_BACK, "PuttingBack", message, result={"failure": why})
    if seen.cluster is None:
        return _failed(why)
    if done and not seen.held_by(restore):
        return _failed(f"{why.rstrip('.')}. {restore.cluster} has what it held before")
    if done or not seen.held_by(restore):
        return replace(going, step=Step.HOLD, annotations={HELD_BY: None if done else restore.name})
    size = before.get("size", 0)
    made = [name for name in _member_jobs(restore, size) if name in seen.jobs]
    if writing := [name for name in made if not seen.jobs[name].finished]:
        return replace(going, step=Step.TIDY, delete_jobs=tuple(writing))
    return _old_data(restore, seen, seen.cluster, size, going) if seen.at_rest(restore) else going


def _old_data(restore: Restore, seen: Observed, cluster: Cluster, size: int, going: Plan) -> Plan:
    """Put it back on every volume; where nothing was touched, the Job does nothing."""
    names = _jobs_on_volumes(restore, seen, cluster, "putback", size)
    if missing := [each for each, name in names.items() if name not in seen.jobs]:
        wanted = [restore_jobs.after(restore, cluster, "putback", each, seen.image) for each in missing]
        return replace(going, step=Step.CREATE, create=tuple(wanted))
    back = [seen.jobs[name] for name in names.values()]
    if all(job.complete for job in back):
        return replace(going, step=Step.HOLD, annotations={HELD_BY: None}, result=going.result | {"putBack": True})
    if failed := [job for job in back if job.failed]:
        message = f"{going.message} That failed too: {failed[0].why}. It is tried again."
        return replace(going, message=message, step=Step.TIDY, delete_jobs=tuple(names.values()), requeue=30)
    return going


def _jobs_on_volumes(restore: Restore, seen: Observed, cluster: Cluster, verb: str, size: int) -> dict[int, str]:
    """A Job for each restored member that has a volume."""
    there = [each for each in range(size) if f"data-{cluster.pod_name(each)}" in seen.claims]
    return {each: restore_jobs.member_name(restore, verb, each) for each in there}


def _failed(why: str) -> Plan:
    return Plan(Phase.FAILED, "Failed", sentence(why), result={"failure": why})


def _member_jobs(restore: Restore, size: int) -> list[str]:
    return [restore_jobs.member_name(restore, "member", each) for each in range(size)]


def _finished(restore: Restore, seen: Observed, before: dict[str, Any], phase: Phase) -> Plan:
    """Once only. What is left to do is to remove what was needed for it."""
    done = Plan(phase, str(phase), before.get("message", ""), requeue=SETTLED, release=restore.deleting)
    going = replace(done, requeue=SOON, release=False)
    size, cluster = before.get("size", 0), seen.cluster
    left = [name for name in seen.jobs if "-tidy-" not in name]
    if seen.source:
        left.append(restore_jobs.source_name(restore))
    if left:
        return replace(going, step=Step.TIDY, delete_jobs=tuple(left))
    if phase is Phase.FAILED or not restore.in_place or cluster is None or before.get("tidied"):
        return done
    names = _jobs_on_volumes(restore, seen, cluster, "tidy", size)
    if missing := [each for each, name in names.items() if name not in seen.jobs]:
        wanted = [restore_jobs.after(restore, cluster, "tidy", each, seen.image) for each in missing]
        return replace(going, step=Step.CREATE, create=tuple(wanted))
    if not all(seen.jobs[name].finished for name in names.values()):
        return going
    if kept := [f"data-{cluster.pod_name(each)}" for each, name in names.items() if seen.jobs[name].failed]:
        told = f"{done.message} What was there before could not be deleted from {', '.join(kept)} and takes up room."
        going = replace(going, message=told)
    return replace(going, step=Step.TIDY, delete_jobs=tuple(names.values()), result={"tidied": True})


def _deleted(restore: Restore, seen: Observed, before: dict[str, Any], phase: Phase) -> Plan:
    """Deleted half-way: as if it had failed."""
    if phase is Phase.STARTING:
        return replace(_starting(restore, seen, before), release=HELD_BY not in seen.annotations)
    if phase is Phase.PUTTING_BACK:
        planned = _put_back(restore, seen, before)
    else:
        planned = _fail(restore, seen, before, "the EtcdRestore was deleted before it was done")
    return replace(planned, release=planned.phase is Phase.FAILED)
