"""What to do next for an EtcdRestore. Pure, as cluster/planner.py.

First the snapshot is fetched and verified; until then nothing is changed. In place, a snapshot of the current data
comes next, and the members are stopped. Then every member's data is made from the same snapshot, under an
initial-cluster-token of this restore, and only when all of it is there does the cluster start, with sealed
configurations: no member can start without its data. The previous data stays on the volumes until the cluster runs, and
is put back when the restore fails. It is deleted only if the snapshot of it succeeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from ..api import backup
from ..api.cluster import HELD_BY, MADE_BY, RESTORED, Cluster
from ..api.restore import Restore, parse
from ..backup import workers
from ..backup.planner import healthy_members
from ..cluster.manifests import claim_manifest
from ..kube import jobs
from ..kube.conditions import conditions, sentence, time_text
from ..kube.manifest import Manifest, display
from ..kube.ownership import API_VERSION
from ..plan import SOON, WATCHFUL, Plan, Ref
from . import jobs as restore_jobs
from . import previous
from .plan import (
    CreateObjects,
    DeleteJobs,
    FetchSnapshot,
    HoldCluster,
    Observation,
    Phase,
    Reason,
    ReleaseCluster,
    RemoveCluster,
)

_SETTLED = 3600  # seconds until a finished restore is looked at again
_SLOW = timedelta(minutes=10)  # for the restored cluster to become healthy


def plan(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan:
    """The next step; `before` is the status so far."""
    planned, phase = _plan(restore, observed, before), Phase(before.get("phase", Phase.PENDING))
    taken = _taken(restore, observed, planned, before)
    if not taken:
        return planned
    message = (
        f"{', '.join(taken)}: not made for this EtcdRestore or its EtcdCluster, so the operator does not use, "
        "change or delete it. Delete it if it is not needed; the restore then continues."
    )
    return Plan(phase, Reason.FOREIGN_OBJECT, message, requeue=WATCHFUL)


def _taken(restore: Restore, observed: Observation, planned: Plan, before: dict[str, Any]) -> list[str]:
    """Foreign objects that have a name which the next step needs. With a foreign PVC, nothing is begun at all."""
    if not isinstance(planned.action, FetchSnapshot | CreateObjects | HoldCluster):
        return []
    names = [display(each) for each in planned.action.creates]
    names += [f"Secret {restore_jobs.transfer_name(restore)}"] if isinstance(planned.action, FetchSnapshot) else []
    taken = [name for name in names if name in observed.foreign]
    phase = Phase(before.get("phase", Phase.PENDING))
    if not observed.cluster or phase.finished or planned.phase in (Phase.STARTING, Phase.PUTTING_BACK):
        return taken
    pods = [observed.cluster.pod_name(each) for each in range(before.get("size", observed.cluster.size))]
    claims = [f"data-{pod}" for pod in pods]
    return taken + [f"PVC {name}" for name in claims if name in observed.claims and not observed.is_own_claim(name)]


def _plan(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan:
    phase = Phase(before.get("phase", Phase.PENDING))
    if phase.finished:
        return _finished(restore, observed, before, phase)
    if restore.deleting:
        return _deleted(restore, observed, before, phase)
    if why := _impossible(restore, observed, before, phase):
        return _fail(restore, observed, before, why)
    if observed.pending and phase.untouched:
        message = f"Waiting for EtcdBackup {restore.backup} to finish: it is {observed.pending}."
        return Plan(Phase.PENDING, Reason.WAITING_FOR_BACKUP, message, requeue=WATCHFUL)
    next_action = {
        Phase.SNAPSHOTTING: _snapshotting,
        Phase.STOPPING: _stopping,
        Phase.RESTORING: _restoring,
        Phase.STARTING: _starting,
        Phase.PUTTING_BACK: _undo,
    }
    return next_action.get(phase, _verifying)(restore, observed, before)


def _impossible(restore: Restore, observed: Observation, before: dict[str, Any], phase: Phase) -> str:
    """Why the restore can't be done; "" when it can."""
    cluster = observed.cluster
    if phase in (Phase.PUTTING_BACK, Phase.STARTING):
        return ""
    if phase.untouched and (why := observed.problem or observed.refused_image):
        return why
    if cluster is None:
        return f"EtcdCluster {restore.cluster} does not exist, so it can't be restored in place"
    if cluster.storage.type != "Persistent":
        return "a snapshot can only be restored onto volumes: spec.storage.type must be Persistent"
    if observed.refusal:
        return f"spec.newCluster.spec is not valid, so nothing was done: {observed.refusal}"
    why = _not_in_place(restore, observed, cluster, phase) if restore.in_place else _not_new(restore, observed)
    known = before.get("etcdVersion") or (observed.snapshot.version if observed.snapshot else "")
    return why or _versions(known, cluster)


def _not_new(restore: Restore, observed: Observation) -> str:
    if observed.resource and observed.annotations.get(MADE_BY) != restore.uid:
        return (
            f"EtcdCluster {restore.cluster} exists and is not changed; choose another name, or restore in place "
            "(spec.inPlace)"
        )
    earlier = sorted(name for name, claim in observed.claims.items() if claim.cluster_uid)
    if not observed.resource and earlier:
        names = ", ".join(earlier)
        return f"{names} hold data of an earlier cluster of this name; delete these PVCs first"
    return ""


def _not_in_place(restore: Restore, observed: Observation, cluster: Cluster, phase: Phase) -> str:
    """Until the hold is taken nothing was changed, so there is nothing to put back."""
    if not phase.untouched and (phase is not Phase.STOPPING or observed.held_by(restore)):
        return ""
    if other := observed.holder or observed.rival:
        return (
            f"EtcdCluster {restore.cluster} is already being restored by EtcdRestore {other}. Nothing was changed. "
            "Wait until that one is finished, or delete it; then create another EtcdRestore"
        )
    if cluster.size == 0:
        return f"EtcdCluster {restore.cluster} has size 0; set spec.size first"
    if cluster.deleting:
        return f"EtcdCluster {restore.cluster} is being deleted"
    return ""


def first_of(restore: Restore, resources: Sequence[Manifest]) -> str:
    """Another EtcdRestore of the same EtcdCluster that comes first: it changes it already, or is older; "" for none.

    So the second one is refused before it takes a snapshot. The hold then decides, should both be as far as that.
    """
    others = [(parse(each), Phase(each.get("status", {}).get("phase", Phase.PENDING))) for each in resources]
    ahead = [
        (other.created, other.uid, other.name)
        for other, phase in others
        if other.cluster == restore.cluster and other.uid != restore.uid and not phase.finished
        if (other.created, other.uid) < (restore.created, restore.uid)
        or not (phase.untouched or phase is Phase.STOPPING)
    ]
    return min(ahead)[2] if ahead else ""


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


def _verifying(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan:
    assert observed.snapshot  # noqa: S101
    assert observed.cluster  # noqa: S101
    facts = {"startTime": before.get("startTime") or time_text(observed.now), "source": observed.snapshot.location}
    message = f"Fetching and verifying {observed.snapshot.location}."
    verifying = Plan(Phase.VERIFYING, Reason.VERIFYING, message, record=facts)
    if observed.source is None:
        near = next(iter(healthy_members(observed.status)), "") if restore.in_place else ""
        made = restore_jobs.source(restore, observed.snapshot, observed.cluster, observed.image, near)
        return replace(verifying, action=FetchSnapshot((made,)))
    job = observed.source
    if job.failed or job.is_stuck(observed.now):
        why = workers.in_words(observed.snapshot.destination, job.why, observed.snapshot.encryption_secret)
        return _fail(restore, observed, before, f"{observed.snapshot.location} can't be restored: {why}")
    checked = workers.snapshot_status(observed.check_log)
    if not job.running or not checked:
        return replace(verifying, message=f"{verifying.message}{job.trouble}", requeue=jobs.patience(job, observed.now))
    # Before 3.6 a snapshot does not contain its version.
    known = checked.get("etcdVersion") or ("3.5" if _minor(observed.cluster.version) > 5 else "")
    if why := _versions(observed.snapshot.version or known, observed.cluster):
        return _fail(restore, observed, before, why)
    found = facts | checked
    planned = _in_place(restore, observed) if restore.in_place else _new(restore, observed, before | found)
    return replace(planned, record=found | dict(planned.record))


def _in_place(restore: Restore, observed: Observation) -> Plan:
    """The snapshot is verified. The current data is saved first, if it can be."""
    if restore.take_snapshot and healthy_members(observed.status):
        return _snapshot_first(restore, observed)
    return _hold(restore, observed)


def _snapshot_first(restore: Restore, observed: Observation) -> Plan:
    message = f"The snapshot is verified. Taking one of the current data of {restore.cluster} first."
    action = CreateObjects((_backup(restore, observed),)) if observed.backup is None else None
    return Plan(Phase.SNAPSHOTTING, Reason.SNAPSHOTTING, message, action, requeue=2)


def backup_name(restore: Restore) -> str:
    """Unique: another EtcdRestore of the same name gets another one."""
    return f"{restore.name}-before-{restore.uid[:8]}"


def _backup(restore: Restore, observed: Observation) -> Manifest:
    """A backup of the current data, to where the source is kept."""
    assert observed.snapshot  # noqa: S101
    spec: Manifest = {"cluster": restore.cluster, "destination": observed.snapshot.beside}
    if observed.snapshot.encryption_secret:
        spec["encryption"] = {"secret": observed.snapshot.encryption_secret}
    return backup.manifest(restore.namespace, backup_name(restore), f"EtcdRestore/{restore.name}", spec)


def _snapshotting(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan:
    state = (observed.backup or {}).get("phase")
    if state == "Succeeded":
        held = _hold(restore, observed)
        return replace(held, record=dict(held.record) | {"snapshot": backup_name(restore)})
    if state == "Failed":
        said = (observed.backup or {}).get("message", "")
        why = (
            f"the snapshot of the current data failed, so nothing was changed: {said} To restore without it, set "
            "spec.inPlace.snapshot to Skip in another EtcdRestore"
        )
        return _fail(restore, observed, before, why)
    return _snapshot_first(restore, observed)


# -- the data


def _hold(restore: Restore, observed: Observation) -> Plan:
    """Stop every member. It is decided on an EtcdCluster that nobody else holds."""
    result = {"size": observed.cluster.size} if observed.cluster else {}
    message = f"Stopping every member of {restore.cluster}."
    action = HoldCluster(restore.cluster, observed.resource_version, {HELD_BY: restore.name})
    return Plan(Phase.STOPPING, Reason.STOPPING, message, action, record=result)


def _hold_again(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan | None:
    """When the annotation was removed: take the hold again, or fail if another EtcdRestore has it; None if held."""
    if observed.at_rest(restore):
        return None
    if _other_holds(restore, observed):
        return _fail(restore, observed, before, f"EtcdRestore {observed.holder} holds {restore.cluster} now")
    held = observed.held_by(restore)
    message = f"Waiting for the members of {restore.cluster} to stop."
    action = None if held else HoldCluster(restore.cluster, observed.resource_version, {HELD_BY: restore.name})
    return Plan(Phase.RESTORING, Reason.STOPPING, message, action)


def _other_holds(restore: Restore, observed: Observation) -> bool:
    return bool(observed.holder) and not observed.held_by(restore)


def _stopping(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan:
    if not observed.held_by(restore):
        return _hold(restore, observed)
    if not observed.at_rest(restore):
        return Plan(Phase.STOPPING, Reason.STOPPING, f"Waiting for the members of {restore.cluster} to stop.")
    return _restoring(restore, observed, before)


def _new(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan:
    """The EtcdCluster of a template, held until its members have their data."""
    assert observed.cluster  # noqa: S101
    size = {"size": observed.cluster.size}
    if observed.resource is not None:
        planned = _restoring(restore, observed, before | size)
        return replace(planned, record=size | dict(planned.record))
    annotations = {HELD_BY: restore.name, MADE_BY: restore.uid}
    meta = {"namespace": restore.namespace, "name": restore.cluster, "annotations": annotations}
    made = {"apiVersion": API_VERSION, "kind": "EtcdCluster", "metadata": meta, "spec": restore.template}
    message = f"The snapshot is verified. Creating EtcdCluster {restore.cluster}."
    return Plan(Phase.VERIFYING, Reason.CREATING, message, CreateObjects((made,)), record=size)


def _restoring(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan:
    cluster, size = observed.cluster, before["size"]
    assert cluster  # noqa: S101
    if waiting := _hold_again(restore, observed, before):
        return waiting
    made = [observed.jobs.get(name) for name in _member_jobs(restore, size)]
    if all(job and job.complete for job in made):
        return _release(restore, observed, before)
    if why := _obstacle(observed, made):
        return _fail(restore, observed, before, why)
    done = sum(bool(job and job.complete) for job in made)
    troubles = " ".join(sorted({job.trouble.strip() for job in made if job and job.problem}))
    message = f"Creating the data of {size} members from revision {before['revision']}: {done} done. {troubles}"
    restoring = Plan(Phase.RESTORING, Reason.RESTORING, message.strip())
    missing = [each for each in range(size) if made[each] is None]
    if not missing:
        return replace(restoring, requeue=max(jobs.patience(job, observed.now) for job in made if job))
    claims = [claim_manifest(cluster, cluster.pod_name(each)) for each in missing]
    wanted = [claim for claim in claims if claim["metadata"]["name"] not in observed.claims]
    assert observed.source  # noqa: S101
    source = restore_jobs.Source(observed.source.address, size, observed.image)
    wanted += [restore_jobs.member(restore, cluster, each, source) for each in missing]
    return replace(restoring, action=CreateObjects(tuple(wanted)))


def _obstacle(observed: Observation, made: Sequence[jobs.Job | None]) -> str:
    """Why the data of the members can't be created; "" when it can."""
    if failed := [job for job in made if job and job.failed]:
        return f"a member's data could not be created: {failed[0].why}"
    if observed.source is None or not observed.source.running:
        return "the Job that serves the snapshot to the members' Jobs has ended"
    return observed.refused_image if None in made else ""  # the EtcdCluster may have been edited in the meantime


def _release(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan:
    """All data is in place: let the cluster start with it."""
    annotations: dict[str, str | None] = {HELD_BY: None, MADE_BY: restore.uid, RESTORED: str(before["size"])}
    message = f"All data is in place. Starting {before['size']} members of {restore.cluster}."
    result = {"releaseTime": time_text(observed.now), "replacedClusterID": observed.status.get("clusterID")}
    return Plan(
        Phase.STARTING,
        Reason.STARTING,
        message,
        ReleaseCluster(restore.cluster, observed.resource_version, annotations),
        record=result if "releaseTime" not in before else {},
    )


def _starting(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan:
    known, old = observed.status.get("clusterID"), before.get("replacedClusterID")
    held = observed.held_by(restore) or observed.annotations.get(MADE_BY) != restore.uid
    if observed.resource is None:
        return _failed(f"EtcdCluster {restore.cluster} was deleted")
    if _other_holds(restore, observed):
        return _failed(f"EtcdRestore {observed.holder} holds {restore.cluster} now, and replaces the restored data")
    if held or (known and known == old):  # not released yet; or the old ID was written back
        return _release(restore, observed, before)
    if known and observed.status.get("phase") == "Running":
        result = {"completionTime": time_text(observed.now), "clusterID": known}
        kept = previous.kept(restore, observed, before)
        message = _success(restore, before | result, kept)
        return Plan(Phase.SUCCEEDED, Reason.SUCCEEDED, message, record=result | {"previousData": kept or None})
    message = f"Waiting for {restore.cluster} to become healthy: {observed.status.get('message', '')}"
    if observed.now - datetime.fromisoformat(before["releaseTime"]) > _SLOW:
        kept = " The previous data is still on the volumes." if restore.in_place else ""
        message = f"{message} This takes more than 10 minutes: look at EtcdCluster {restore.cluster}.{kept}"
    return Plan(Phase.STARTING, Reason.STARTING, message)


# -- the end


def _fail(restore: Restore, observed: Observation, before: dict[str, Any], why: str) -> Plan:
    """What was changed is undone first: the previous data is put back, or the new EtcdCluster is removed."""
    own = restore.in_place or observed.annotations.get(MADE_BY) == restore.uid
    if own and observed.held_by(restore) and "size" in before:  # it was planned to hold it, or to create it
        return _undo(restore, observed, before | {"failure": why})
    return _failed(why)


def _undo(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan:
    return (_put_back if restore.in_place else _remove)(restore, observed, before)


def _put_back(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan:
    why, done = before["failure"], before.get("putBack", False)
    message = f"The restore failed: {why.rstrip('.')}. Putting the previous data of {restore.cluster} back."
    going = Plan(Phase.PUTTING_BACK, Reason.PUTTING_BACK, message, record={"failure": why})
    if observed.cluster is None:
        return _failed(why)
    if done and not observed.held_by(restore):
        return _failed(f"{why.rstrip('.')}. {restore.cluster} has its previous data")
    if _other_holds(restore, observed):
        return _failed(f"{why.rstrip('.')}. EtcdRestore {observed.holder} holds {restore.cluster} now")
    if done or not observed.held_by(restore):
        wanted = {HELD_BY: None if done else restore.name}
        return replace(going, action=HoldCluster(restore.cluster, observed.resource_version, wanted))
    size = before.get("size", 0)
    made = [name for name in _member_jobs(restore, size) if name in observed.jobs]
    if writing := [name for name in made if not observed.jobs[name].finished]:
        return replace(going, action=previous.delete_jobs(observed, writing))
    return previous.put_back(restore, observed, size, going) if observed.at_rest(restore) else going


def _remove(restore: Restore, observed: Observation, before: dict[str, Any]) -> Plan:
    """Remove a new EtcdCluster: it is held, so no member has started, and nobody else has anything on its volumes."""
    why, resource = before["failure"].rstrip("."), observed.resource
    message = f"The restore failed: {why}. Removing EtcdCluster {restore.cluster}, which has no data."
    going = Plan(Phase.PUTTING_BACK, Reason.PUTTING_BACK, message, record={"failure": why})
    if made := [name for name in _member_jobs(restore, before["size"]) if name in observed.jobs]:
        return replace(going, action=previous.delete_jobs(observed, made))
    if resource is None or "deletionTimestamp" in resource["metadata"]:
        return _failed(f"{why}. EtcdCluster {restore.cluster}, which this EtcdRestore created, was removed")
    if not observed.held_by(restore):
        return _failed(f"{why}. EtcdCluster {restore.cluster} is not held by this EtcdRestore any more, so it is kept")
    cluster = Ref(restore.cluster, resource["metadata"]["uid"])
    own = {name: each for name, each in observed.claims.items() if each.cluster_uid == cluster.uid}
    claims = tuple(Ref(name, each.uid) for name, each in own.items() if not each.deleting)
    return replace(going, action=RemoveCluster(cluster, claims))


def _failed(why: str) -> Plan:
    return Plan(Phase.FAILED, Reason.FAILED, sentence(why), record={"failure": why})


def _member_jobs(restore: Restore, size: int) -> list[str]:
    return [restore_jobs.member_name(restore, "member", each) for each in range(size)]


def _finished(restore: Restore, observed: Observation, before: dict[str, Any], phase: Phase) -> Plan:
    """A restore runs once. What is left is to remove what was needed for it."""
    reason = Reason.SUCCEEDED if phase is Phase.SUCCEEDED else Reason.FAILED
    done = Plan(phase, reason, before.get("message", ""), requeue=_SETTLED, finalized=restore.deleting)
    going = replace(done, requeue=SOON, finalized=False)
    replaced = phase is Phase.SUCCEEDED and restore.in_place and observed.cluster is not None
    tidied = before.get("tidied") or not replaced
    kept = "" if tidied else previous.kept(restore, observed, before)
    # Jobs that delete the previous data: a crash may have left some, or the copy of that data was deleted since.
    left = [name for name in observed.jobs if tidied or kept or "-tidy-" not in name]
    source = observed.source
    if left or source:
        refs = (Ref(restore_jobs.source_name(restore), source.uid),) if source else ()
        return replace(going, action=DeleteJobs(previous.delete_jobs(observed, left).jobs + refs))
    if tidied:
        return done
    if kept:
        return replace(done, message=_success(restore, before, kept), record={"previousData": kept})
    return previous.tidy(restore, observed, before["size"], replace(going, message=_success(restore, before, "")))


def _success(restore: Restore, before: dict[str, Any], kept: str) -> str:
    runs = f"{restore.cluster} runs with the data of revision {before['revision']}, as cluster {before['clusterID']}."
    return f"{runs} {previous.how_to_delete(restore, kept)}" if kept else runs


def _deleted(restore: Restore, observed: Observation, before: dict[str, Any], phase: Phase) -> Plan:
    """Deleted before it finished: the same as a failure."""
    if phase is Phase.STARTING:
        return replace(_starting(restore, observed, before), finalized=not observed.held_by(restore))
    if phase is Phase.PUTTING_BACK:
        planned = _undo(restore, observed, before)
    else:
        planned = _fail(restore, observed, before, "the EtcdRestore was deleted before it was done")
    return replace(planned, finalized=planned.phase is Phase.FAILED)


def abandoned(_: Restore) -> Plan:
    """The plan instead, when the namespace is being deleted: its volumes are deleted too."""
    return Plan(Phase.FAILED, Reason.GONE, "The namespace is being deleted.", finalized=True)


def gone(_name: str) -> Plan:
    return Plan(Phase.FAILED, Reason.GONE, "The EtcdRestore is gone.", finalized=True)


def status(restore: Restore, observed: Observation, done: Plan, before: dict[str, Any]) -> dict[str, Any]:
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
        **done.record,
        "conditions": conditions(said, restore.generation, before.get("conditions", []), observed.now),
    }
