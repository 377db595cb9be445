"""What to do next for an EtcdBackup. Pure, as cluster/planner.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ..api.backup import SKIP_CLEANUP, Backup
from ..kube import jobs
from ..kube.conditions import conditions, sentence, time_text
from ..kube.manifest import Manifest, display
from ..kube.quantity import rounded
from ..plan import SOON, WATCHFUL, Plan, Ref
from . import workers
from .jobs import cleanup_job, cleanup_name, job_name, own_claim, snapshot_job
from .plan import CleanUp, Observation, Phase, Reason, StartJob

_SETTLED = 3600  # seconds until a finished backup is looked at again
_ENDED = {Phase.SUCCEEDED: Reason.SUCCEEDED, Phase.FAILED: Reason.FAILED}


def outcome(status: dict[str, Any]) -> Phase | None:
    """How it ended; known also while it is being deleted, when its phase is Deleting."""
    true = {each["type"] for each in status.get("conditions", []) if each["status"] == "True"}
    return Phase.SUCCEEDED if "Complete" in true else Phase.FAILED if "Failed" in true else None


def told(name: str, status: dict[str, Any]) -> dict[str, Any]:
    """What the status of the EtcdCluster says of a successful backup."""
    return {"name": name, "time": status["completionTime"], "revision": status["revision"]}


def last_good(besides: Backup, resources: Sequence[Manifest]) -> dict[str, Any] | None:
    """The newest successful EtcdBackup of the same cluster that remains when this one is deleted."""
    found = [
        told(each["metadata"]["name"], each["status"])
        for each in resources
        if each["spec"]["cluster"] == besides.cluster
        and each["metadata"]["uid"] != besides.uid
        and "deletionTimestamp" not in each["metadata"]
        and outcome(each.get("status", {})) is Phase.SUCCEEDED
    ]
    return max(found, key=lambda each: (each["time"], each["revision"]), default=None)


def plan(backup: Backup, observed: Observation, before: dict[str, Any]) -> Plan:
    """The next step; `before` is the status so far."""
    planned = _plan(backup, observed, before)
    creates = planned.action.creates if planned.action else ()
    taken = [name for name in map(display, creates) if name in observed.foreign]
    if not taken:
        return planned
    skip = f" To keep what is at {backup.location}, set the annotation {SKIP_CLEANUP}=true." if backup.deleting else ""
    message = f"{_foreign(taken)} Delete it.{skip}"
    return replace(planned, reason=Reason.FOREIGN_OBJECT, message=message, action=None, requeue=WATCHFUL)


def _foreign(names: Sequence[str]) -> str:
    return f"{', '.join(names)}: not made for this EtcdBackup, so it is neither used nor deleted."


def _plan(backup: Backup, observed: Observation, before: dict[str, Any]) -> Plan:
    ended = outcome(before)
    if backup.deleting:
        return _delete(backup, observed, before, ended)
    if ended:  # once only
        return _clean_up(backup, observed, Plan(ended, _ENDED[ended], before.get("message", ""), requeue=_SETTLED))
    if failure := before.get("failure"):
        return _clean(backup, observed, failure)
    if observed.job and not observed.job.stopping:
        return _follow(backup, observed, observed.job)
    if before.get("startTime"):
        return _fail(backup, observed, "its Job was deleted", left=True)
    return _start(backup, observed, before)


def _start(backup: Backup, observed: Observation, before: dict[str, Any]) -> Plan:
    if observed.job:
        return Plan(Phase.PENDING, Reason.WAITING_FOR_JOB, f"Waiting for an earlier Job {job_name(backup)} to end.")
    cluster = observed.cluster
    if cluster is None:
        return _failed(f"there is no EtcdCluster {backup.cluster} in this namespace")
    members = healthy_members(observed.cluster_status)
    if observed.missing or _taken(backup, observed) or not members:
        return _wait(backup, observed, before)
    if observed.refused_image and members[0] not in observed.images:
        return _failed(observed.refused_image)
    message = f"Taking a snapshot of {backup.cluster} from {members[0]}."
    wanted = [own_claim(backup, cluster)] if backup.own_claim else []
    wanted.append(snapshot_job(backup, cluster, observed, members))
    return Plan(Phase.RUNNING, Reason.STARTED, message, StartJob(tuple(wanted)))


def _wait(backup: Backup, observed: Observation, before: dict[str, Any]) -> Plan:
    """Wait two minutes at most for what may exist in a moment."""
    too_late = observed.now - _first_look(before, observed.now) > jobs.STARTING
    if taken := _taken(backup, observed):
        message = f"{_foreign(taken)} Delete it."
        return _failed(message) if too_late else Plan(Phase.PENDING, Reason.FOREIGN_OBJECT, message)
    if observed.missing:
        message = f"{observed.missing}. Create it within two minutes."
        return _failed(observed.missing) if too_late else Plan(Phase.PENDING, Reason.WAITING_FOR_OBJECTS, message)
    if too_late:
        state = observed.cluster_status.get("phase", "Pending")
        return _failed(f"no member of EtcdCluster {backup.cluster} is healthy; its phase is {state}")
    message = f"Waiting for a healthy member of EtcdCluster {backup.cluster}."
    return Plan(Phase.PENDING, Reason.WAITING_FOR_CLUSTER, message)


def _taken(backup: Backup, observed: Observation) -> list[str]:
    """Objects that have a name that it needs to start, and belong to something else."""
    claim = observed.claim_uid not in (None, backup.uid)
    job = f"Job {job_name(backup)}"
    return ([job] if job in observed.foreign else []) + ([f"PVC {backup.own_claim}"] if claim else [])


def _first_look(before: dict[str, Any], now: datetime) -> datetime:
    """When it was observed for the first time: a busy operator may be late."""
    times = [datetime.fromisoformat(each["lastTransitionTime"]) for each in before.get("conditions", [])]
    return min(times, default=now)


def healthy_members(cluster_status: dict[str, Any]) -> list[str]:
    """The healthy voters' pods, followers first."""
    members = [m for m in cluster_status.get("members", []) if m.get("healthy") and m["role"] != "learner"]
    return [member["name"] for member in sorted(members, key=lambda m: (m["role"] == "leader", m["name"]))]


def _follow(backup: Backup, observed: Observation, job: jobs.Job) -> Plan:
    begun = {"startTime": time_text(job.started)}
    if job.complete:
        return _complete(backup, observed, job)
    if job.failed:
        saved = job.ended.get("save")
        # A worker that reported its own failure has left nothing, unless it is unsure.
        left = saved is None or saved.code == 0 or "error" not in saved.report or saved.report.get("unsure", False)
        why = workers.in_words(backup.destination, job.why, backup.encryption_secret)
        return _fail(backup, observed, why, left=left)
    if job.is_stuck(observed.now):
        return _fail(backup, observed, job.problem, left=job.begun)
    doing = "Verifying the snapshot." if "save" in job.ended else f"Taking a snapshot of {backup.cluster}."
    message, requeue = f"{doing}{job.trouble}", jobs.patience(job, observed.now)
    return Plan(Phase.RUNNING, Reason.RUNNING, message, record=begun, requeue=requeue)


def _complete(backup: Backup, observed: Observation, job: jobs.Job) -> Plan:
    saved = job.ended["save"].report if "save" in job.ended else {}
    if observed.check_log is None and job.pod and observed.now - job.started < backup.deadline + jobs.STARTING:
        begun = {"startTime": time_text(job.started)}
        return Plan(Phase.RUNNING, Reason.RUNNING, "Waiting for the log of etcdutl.", record=begun)
    checked = workers.snapshot_status(observed.check_log)
    if not checked:
        return _fail(
            backup, observed, f"the output of etcdutl can't be parsed: {(observed.check_log or '')[:200]}", left=True
        )
    if "sha256" not in saved:
        return _fail(backup, observed, "the Job reported nothing about the snapshot", left=True)
    result = {
        "startTime": time_text(job.started),
        "completionTime": time_text(observed.now),
        "location": backup.location,
        **{name: checked[name] for name in ("revision", "keys", "hash")},
        "size": rounded(saved["size"]),
        "bytes": saved["size"],
        "sha256": saved["sha256"],
        "etcdVersion": saved["version"],
        "clusterID": saved["cluster_id"],
        "member": saved["member"],
        "seconds": str(saved["seconds"]),
    }
    message = f"Revision {result['revision']} of {backup.cluster}, {result['size']}, at {backup.location}."
    return Plan(Phase.SUCCEEDED, Reason.SUCCEEDED, message, record=result)


def _fail(backup: Backup, observed: Observation, why: str, *, left: bool) -> Plan:
    """It has failed; `left` when something may be at the destination."""
    if left or backup.own_claim:
        return _clean(backup, observed, why)
    return _clean_up(backup, observed, _failed(why))


def _clean(backup: Backup, observed: Observation, why: str) -> Plan:
    """Remove what a failed backup has left, then report that it failed."""
    noted = {"failure": why, "startTime": time_text(observed.job.started if observed.job else observed.now)}
    going = Plan(Phase.RUNNING, Reason.CLEANING_UP, f"The backup failed: {why}. Removing what it left.", record=noted)
    removing, job = _remove(backup, observed, going), observed.cleanup
    if removing is None:
        return _failed(why)
    if job and (job.failed or job.is_stuck(observed.now)):
        trouble = workers.in_words(backup.destination, job.why) if job.failed else job.problem
        return _failed(f"{why}; what it may have left at {backup.location} could not be removed: {trouble}")
    return removing


def _remove(backup: Backup, observed: Observation, going: Plan) -> Plan | None:
    """The next action to remove what is at the destination; None when it is gone."""
    if observed.job and not observed.job.finished:  # it must not write any more
        return replace(going, action=CleanUp(jobs=_refs({job_name(backup): observed.job})))
    if backup.own_claim and not observed.shared:
        own = observed.claim if observed.claim_uid == backup.uid else None
        return None if own is None else replace(going, action=CleanUp(claims=(own,)))
    if observed.cleanup is None:
        return replace(going, action=StartJob((cleanup_job(backup, observed),)))
    return None if observed.cleanup.complete else replace(going, requeue=jobs.patience(observed.cleanup, observed.now))


def _failed(why: str) -> Plan:
    return Plan(Phase.FAILED, Reason.FAILED, sentence(why), record={"failure": why})


def _clean_up(backup: Backup, observed: Observation, done: Plan) -> Plan:
    """Finished: the Jobs have reported all they know."""
    left = {job_name(backup): observed.job, cleanup_name(backup): observed.cleanup}
    return replace(done, action=CleanUp(jobs=_refs(left)), requeue=SOON) if any(left.values()) else done


def _refs(found: Mapping[str, jobs.Job | None]) -> tuple[Ref, ...]:
    return tuple(Ref(name, job.uid) for name, job in found.items() if job)


def _delete(backup: Backup, observed: Observation, before: dict[str, Any], ended: Phase | None) -> Plan:
    """The finalizer: nothing is left running, and the data is deleted if spec.deletion.storage says so."""
    # Recorded before the Job is deleted: the next reconcile must know that there was one.
    noted = {"startTime": time_text(observed.job.started)} if observed.job and "startTime" not in before else {}
    begun = "startTime" in before or observed.job is not None or observed.claim_uid == backup.uid
    wanted = begun if ended is None else ended is Phase.SUCCEEDED and backup.delete_data
    trouble = observed.cleanup.trouble if observed.cleanup else ""
    going = Plan(Phase.DELETING, Reason.DELETING, f"Deleting {backup.location}.{trouble}", record=noted)
    removing = _remove(backup, observed, going) if wanted and not backup.skip_cleanup else None
    if removing is None:
        return Plan(Phase.DELETING, Reason.DELETED, "Nothing is left to do.", finalized=True)
    if observed.cleanup and observed.cleanup.failed:
        why = workers.in_words(backup.destination, observed.cleanup.why)
        message = (
            f"{backup.location} can't be deleted: {why}. It is tried again. To delete this EtcdBackup and keep its "
            f"data, set the annotation {SKIP_CLEANUP}=true."
        )
        again = CleanUp(jobs=_refs({cleanup_name(backup): observed.cleanup}))
        return Plan(Phase.DELETING, Reason.CANNOT_DELETE, message, again, requeue=30)
    return removing


def abandoned(backup: Backup) -> Plan:
    """The plan instead, when the namespace is being deleted: no Job can run there to delete what is elsewhere."""
    message = f"The namespace is being deleted, so no Job can run in it: the data at {backup.location} stays."
    return Plan(Phase.DELETING, Reason.LEFT_BEHIND, message, finalized=True)


def status(backup: Backup, observed: Observation, done: Plan, before: dict[str, Any]) -> dict[str, Any]:
    """The whole status."""
    ended = outcome(before) if done.phase is Phase.DELETING else done.phase
    said = (
        ("Complete", str(ended is Phase.SUCCEEDED), done.reason, done.message),
        ("Failed", str(ended is Phase.FAILED), done.reason, done.message),
    )
    return {
        "phase": str(done.phase),
        "message": done.message,
        "observedGeneration": backup.generation,
        "destination": str(backup.destination),
        "requestedBy": before.get("requestedBy") or backup.requested_by,
        **done.record,
        "conditions": conditions(said, backup.generation, before.get("conditions", []), observed.now),
    }


def gone(name: str) -> Plan:
    return Plan(Phase.DELETING, Reason.GONE, f"EtcdBackup {name} is gone.", finalized=True)
