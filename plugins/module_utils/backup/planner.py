"""What to do next for an EtcdBackup: a pure function, as planner.py is for an EtcdCluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from ..api.backup import BACKUP_LABEL, BACKUP_UID, LET_GO, Backup
from ..api.cluster import Cluster
from ..kube.conditions import conditions, sentence, time_text
from ..kube.manifest import Manifest
from ..kube.quantity import rounded
from . import jobs

SOON, SETTLED = 1, 3600
_DELETING = 300  # seconds for a Job that deletes a snapshot


class Phase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    DELETING = "Deleting"


class Step(StrEnum):
    """Each has a file in roles/etcdbackup/tasks/steps/."""

    IDLE = "idle"
    CREATE = "create"  # a Job, and a claim if it has one of its own
    TIDY = "tidy"  # remove what is done with


@dataclass(frozen=True)
class Observed:
    now: datetime
    image: str = ""  # the operator's own
    cluster: Cluster | None = None
    cluster_status: dict[str, Any] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)  # of the members' pods
    claim_uid: str | None = None  # for which EtcdBackup the claim of its own was made; None when there is no such claim
    shared: bool = False  # another EtcdBackup is kept on it, too
    job: jobs.Job | None = None
    check_log: str | None = None  # what etcdutl said; None when that can't be had now
    cleanup: jobs.Job | None = None
    missing: str = ""  # what a Job would wait for in vain, in words


@dataclass(frozen=True)
class Plan:
    phase: Phase
    reason: str
    message: str
    step: Step = Step.IDLE
    create: tuple[Manifest, ...] = ()
    delete_jobs: tuple[str, ...] = ()
    delete_claims: tuple[str, ...] = ()
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


def outcome(status: dict[str, Any]) -> Phase | None:
    """How it ended; known also while it is deleted, when the phase says so no more."""
    true = {each["type"] for each in status.get("conditions", []) if each["status"] == "True"}
    return Phase.SUCCEEDED if "Complete" in true else Phase.FAILED if "Failed" in true else None


def told(name: str, status: dict[str, Any]) -> dict[str, Any]:
    """What the EtcdCluster is told of a good one."""
    return {"name": name, "time": status["completionTime"], "revision": status["revision"]}


def last_good(besides: Backup, resources: Sequence[Manifest]) -> dict[str, Any] | None:
    """The newest good EtcdBackup of the same cluster that is left when this one goes, as its cluster is told of it."""
    found = [
        told(each["metadata"]["name"], each["status"])
        for each in resources
        if each["spec"]["cluster"] == besides.cluster
        and each["metadata"]["uid"] != besides.uid
        and "deletionTimestamp" not in each["metadata"]
        and outcome(each.get("status", {})) is Phase.SUCCEEDED
    ]
    return max(found, key=lambda each: (each["time"], each["revision"]), default=None)


def plan(backup: Backup, seen: Observed, before: dict[str, Any]) -> Plan:
    """The next step; `before` is the status so far."""
    ended = outcome(before)
    if backup.deleting:
        return _delete(backup, seen, before, ended)
    if ended:  # once only
        return _tidy(backup, seen, Plan(ended, str(ended), before.get("message", ""), requeue=SETTLED))
    if failure := before.get("failure"):
        return _clean(backup, seen, failure)
    if seen.job and not seen.job.stopping:
        return _follow(backup, seen, seen.job)
    if before.get("startTime"):
        return _fail(backup, seen, "its Job was deleted", left=True)
    return _start(backup, seen, before)


def _start(backup: Backup, seen: Observed, before: dict[str, Any]) -> Plan:
    if seen.job:
        return Plan(Phase.PENDING, "WaitingForJob", f"Waiting for an earlier Job {job_name(backup)} to end.")
    cluster = seen.cluster
    if cluster is None:
        return _failed(f"there is no EtcdCluster {backup.cluster} in this namespace")
    if seen.claim_uid not in (None, backup.uid):
        return _failed(f"there is a claim {backup.own_claim} already, and it was not made for this EtcdBackup")
    members = healthy_members(seen.cluster_status)
    if seen.missing or not members:
        return _wait(backup, seen, before)
    message = f"Taking a snapshot of {backup.cluster} from {members[0]}."
    wanted = [_claim(backup, cluster)] if backup.own_claim else []
    wanted.append(_job(backup, cluster, seen, members))
    return Plan(Phase.RUNNING, "Started", message, Step.CREATE, tuple(wanted))


def _wait(backup: Backup, seen: Observed, before: dict[str, Any]) -> Plan:
    """For what may be there in a moment; not for longer."""
    too_late = seen.now - _first_look(before, seen.now) > jobs.STARTING
    if seen.missing:
        message = f"{sentence(seen.missing)} It is waited for."
        return _failed(seen.missing) if too_late else Plan(Phase.PENDING, "WaitingForObjects", message)
    if too_late:
        state = seen.cluster_status.get("phase", "Pending")
        return _failed(f"no member of EtcdCluster {backup.cluster} is healthy; it is {state}")
    return Plan(Phase.PENDING, "WaitingForCluster", f"Waiting for EtcdCluster {backup.cluster} to serve.")


def _first_look(before: dict[str, Any], now: datetime) -> datetime:
    """When it was looked at for the first time: a busy operator may be late."""
    times = [datetime.fromisoformat(each["lastTransitionTime"]) for each in before.get("conditions", [])]
    return min(times, default=now)


def healthy_members(cluster_status: dict[str, Any]) -> list[str]:
    """The healthy voters' pods, followers first."""
    members = [m for m in cluster_status.get("members", []) if m.get("healthy") and m["role"] != "learner"]
    return [member["name"] for member in sorted(members, key=lambda m: (m["role"] == "leader", m["name"]))]


def _follow(backup: Backup, seen: Observed, job: jobs.Job) -> Plan:
    begun = {"startTime": time_text(job.started)}
    if job.complete:
        return _complete(backup, seen, job)
    if job.failed:
        saved = job.ended.get("save")
        # What reported its own failure has left nothing, if it is sure of that.
        left = saved is None or saved.code == 0 or "error" not in saved.report or saved.report.get("unsure", False)
        return _fail(backup, seen, jobs.in_words(backup.destination, job.why), left=left)
    if job.is_stuck(seen.now):
        return _fail(backup, seen, job.problem, left=job.begun)
    doing = "Checking the snapshot." if "save" in job.ended else f"Taking a snapshot of {backup.cluster}."
    return Plan(Phase.RUNNING, "Running", f"{doing}{job.trouble}", result=begun, requeue=jobs.patience(job, seen.now))


def _complete(backup: Backup, seen: Observed, job: jobs.Job) -> Plan:
    saved = job.ended["save"].report if "save" in job.ended else {}
    if seen.check_log is None and job.pod and seen.now - job.started < backup.deadline + jobs.STARTING:
        begun = {"startTime": time_text(job.started)}
        return Plan(Phase.RUNNING, "Running", "Waiting for the log of etcdutl.", result=begun)
    checked = jobs.snapshot_status(seen.check_log)
    if not checked:
        return _fail(backup, seen, f"etcdutl's answer can't be read: {(seen.check_log or '')[:200]}", left=True)
    if "sha256" not in saved:
        return _fail(backup, seen, "the Job told nothing about the snapshot", left=True)
    result = {
        "startTime": time_text(job.started),
        "completionTime": time_text(seen.now),
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
    return Plan(Phase.SUCCEEDED, "Succeeded", message, result=result)


def _fail(backup: Backup, seen: Observed, why: str, *, left: bool) -> Plan:
    """It has failed; `left` when something may be at the destination."""
    if left or backup.own_claim:
        return _clean(backup, seen, why)
    return _tidy(backup, seen, _failed(why))


def _clean(backup: Backup, seen: Observed, why: str) -> Plan:
    """Remove what a failed backup has left, then say that it failed."""
    noted = {"failure": why, "startTime": time_text(seen.job.started if seen.job else seen.now)}
    going = Plan(Phase.RUNNING, "CleaningUp", f"It failed: {why}. Removing what it left.", result=noted)
    removing, job = _remove(backup, seen, going), seen.cleanup
    if removing is None:
        return _failed(why)
    if job and (job.failed or job.is_stuck(seen.now)):
        trouble = jobs.in_words(backup.destination, job.why) if job.failed else job.problem
        return _failed(f"{why}; and what it may have left at {backup.location} could not be removed: {trouble}")
    return removing


def _remove(backup: Backup, seen: Observed, going: Plan) -> Plan | None:
    """The next step of removing what is at the destination; None when it is gone."""
    if seen.job and not seen.job.finished:  # nobody may write any more
        return replace(going, step=Step.TIDY, delete_jobs=(job_name(backup),))
    if backup.own_claim and not seen.shared:
        gone = seen.claim_uid != backup.uid
        return None if gone else replace(going, step=Step.TIDY, delete_claims=(backup.own_claim,))
    if seen.cleanup is None:
        return replace(going, step=Step.CREATE, create=(_cleanup(backup, seen),))
    return None if seen.cleanup.complete else replace(going, requeue=jobs.patience(seen.cleanup, seen.now))


def _failed(why: str) -> Plan:
    return Plan(Phase.FAILED, "Failed", sentence(why), result={"failure": why})


def _tidy(backup: Backup, seen: Observed, done: Plan) -> Plan:
    """Finished: the Jobs have told all they know."""
    left = [name for name, job in ((job_name(backup), seen.job), (cleanup_name(backup), seen.cleanup)) if job]
    return replace(done, step=Step.TIDY, delete_jobs=tuple(left), requeue=SOON) if left else done


def _delete(backup: Backup, seen: Observed, before: dict[str, Any], ended: Phase | None) -> Plan:
    """The finalizer: nothing is left running, and the data goes if the user said so."""
    # Noted before the Job goes: who looks next must know that there was one.
    noted = {"startTime": time_text(seen.job.started)} if seen.job and "startTime" not in before else {}
    begun = "startTime" in before or seen.job is not None or seen.claim_uid == backup.uid
    wanted = begun if ended is None else ended is Phase.SUCCEEDED and backup.delete_data
    trouble = seen.cleanup.trouble if seen.cleanup else ""
    going = Plan(Phase.DELETING, "Deleting", f"Deleting {backup.location}.{trouble}", result=noted)
    removing = _remove(backup, seen, going) if wanted and not backup.let_go else None
    if removing is None:
        return Plan(Phase.DELETING, "Deleted", "Nothing is left to do.", release=True)
    if seen.cleanup and seen.cleanup.failed:
        why = jobs.in_words(backup.destination, seen.cleanup.why)
        message = (
            f"{backup.location} can't be deleted: {why}. It is tried again; to delete this EtcdBackup "
            f"without its data, annotate it with {LET_GO}=true."
        )
        names = (cleanup_name(backup),)
        return Plan(Phase.DELETING, "CannotDelete", message, Step.TIDY, delete_jobs=names, requeue=30)
    return removing


def left_behind(backup: Backup) -> Plan:
    """The plan instead, when its namespace goes: no Job can run there any more to delete what is elsewhere."""
    message = f"The namespace is being deleted, and no Job can run in it; what is at {backup.location} stays."
    return Plan(Phase.DELETING, "LeftBehind", message, release=True)


def _labels(backup: Backup) -> dict[str, str]:
    # Not etcdops.dev/cluster: that finds members.
    return {BACKUP_LABEL: backup.name}


def _claim(backup: Backup, cluster: Cluster) -> Manifest:
    """A claim for this snapshot alone. It has no owner: whether it goes with its EtcdBackup is for the user to say."""
    store = backup.destination.claim
    assert store  # noqa: S101
    class_name = store.class_name or cluster.storage.class_name
    labels = {**_labels(backup), BACKUP_UID: backup.uid, "app.kubernetes.io/managed-by": "etcdops"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": backup.namespace, "name": store.name, "labels": labels},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": store.size or cluster.storage.size}},
            **({"storageClassName": class_name} if class_name else {}),
        },
    }


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
    # What the members run: an upgrade that waits for this snapshot may ask for an image that does not exist.
    running = replace(cluster, version=seen.cluster_status.get("version") or cluster.version)
    check = jobs.etcdutl("check", running.image, arguments, jobs.Parts(mounts=looks.mounts))
    order = jobs.Order(
        namespace=backup.namespace,
        name=job_name(backup),
        owner=jobs.owner("EtcdBackup", backup.name, backup.uid),
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
        owner=jobs.owner("EtcdBackup", backup.name, backup.uid),
        containers=(work,),
        volumes=needs.volumes,
        deadline=_DELETING,
        labels=_labels(backup),
        pod=seen.cluster.pod if seen.cluster else {},
        retries=2,
    )
    return jobs.manifest(order)


def status(backup: Backup, done: Plan, before: dict[str, Any], now: datetime) -> dict[str, Any]:
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
        **done.result,
        "conditions": conditions(said, backup.generation, before.get("conditions", []), now),
    }
