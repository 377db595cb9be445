"""What becomes of the data that a restore in place replaced: put back, deleted, or kept. Pure.

It is in a folder on each member's volume. It is deleted only if there is a verified copy of it elsewhere, or a person
asks for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..api.cluster import HELD_BY
from ..api.restore import DELETE_PREVIOUS_DATA, Restore
from ..plan import Plan, Ref
from . import jobs as restore_jobs
from .plan import CreateObjects, DeleteJobs, HoldCluster, Observation


def kept(restore: Restore, observed: Observation, before: dict[str, Any]) -> str:
    """Where the previous data is kept, because there is no other copy of it; "" when it may be deleted."""
    if not restore.in_place or restore.delete_previous or _is_copied(observed, before):
        return ""
    volumes = _jobs(restore, observed, "tidy", before["size"])
    left = [each for each, job in volumes.items() if job not in observed.jobs or not observed.jobs[job].complete]
    if not left:
        return ""
    names = _claims(observed, left)
    return f"{restore_jobs.previous_data(restore)} on PVC {names}"


def how_to_delete(restore: Restore, place: str) -> str:
    return (
        f"The previous data is kept in the folder {place}, because no verified snapshot of it exists. To delete it: "
        f"kubectl annotate etcdr/{restore.name} --namespace={restore.namespace} {DELETE_PREVIOUS_DATA}=true"
    )


def _is_copied(observed: Observation, before: dict[str, Any]) -> bool:
    """Whether the EtcdBackup that was taken first has succeeded, still exists, and is of the data that was replaced."""
    copy, replaced = observed.backup or {}, before.get("replacedClusterID")
    return copy.get("phase") == "Succeeded" and bool(replaced) and copy.get("clusterID") == replaced


def put_back(restore: Restore, observed: Observation, size: int, going: Plan) -> Plan:
    """Put the previous data back on every volume; where nothing was changed, the Job does nothing."""
    names = _jobs(restore, observed, "putback", size)
    of_others = {restore_jobs.member_name(restore, "putback", each) for each in range(size)} - set(names.values())
    if useless := sorted(of_others & observed.jobs.keys()):  # a person deleted the PVC, which waits for the Job's pod
        return replace(going, action=delete_jobs(observed, useless))
    if made := _create(restore, observed, "putback", names):
        return replace(going, action=made)
    back = {each: observed.jobs[name] for each, name in names.items()}
    if all(job.complete for job in back.values()):
        release = HoldCluster(restore.cluster, observed.resource_version, {HELD_BY: None})
        return replace(going, action=release, record={**going.record, "putBack": True})
    if failed := [each for each, job in back.items() if job.failed]:
        why = f"That failed too: {back[failed[0]].why}. It is tried again. {_way_out(observed, failed)}"
        return replace(
            going, message=f"{going.message} {why}", action=delete_jobs(observed, names.values()), requeue=30
        )
    if stuck := [each for each, job in back.items() if job.is_stuck(observed.now)]:
        return replace(going, message=f"{going.message}{back[stuck[0]].trouble} {_way_out(observed, stuck)}")
    return going


def _way_out(observed: Observation, ordinals: list[int]) -> str:
    return (
        f"Correct the cause. If the volume is lost, delete PVC {_claims(observed, ordinals)}: the cluster then starts "
        "with the previous data of the others."
    )


def tidy(restore: Restore, observed: Observation, size: int, going: Plan) -> Plan:
    """Delete the previous data from every volume."""
    names = _jobs(restore, observed, "tidy", size)
    if made := _create(restore, observed, "tidy", names):
        return replace(going, action=made)
    if not all(observed.jobs[name].finished for name in names.values()):
        return going
    left = _claims(observed, [each for each, name in names.items() if observed.jobs[name].failed])
    if left:
        told = f"{going.message} The previous data could not be deleted from PVC {left} and uses space there."
        going = replace(going, message=told)
    place = f"{restore_jobs.previous_data(restore)} on PVC {left}" if left else None
    record = {"tidied": True, "previousData": place}
    return replace(going, action=delete_jobs(observed, names.values()), record=record)


def delete_jobs(observed: Observation, names: Iterable[str]) -> DeleteJobs:
    return DeleteJobs(tuple(Ref(name, observed.jobs[name].uid) for name in names))


def _jobs(restore: Restore, observed: Observation, verb: str, size: int) -> dict[int, str]:
    """A Job for each restored member that has a volume."""
    assert observed.cluster  # noqa: S101
    names = {each: f"data-{observed.cluster.pod_name(each)}" for each in range(size)}
    own = {each: observed.claims[name] for each, name in names.items() if observed.is_own_claim(name)}
    there = [each for each, claim in own.items() if not claim.deleting]
    return {each: restore_jobs.member_name(restore, verb, each) for each in there}


def _create(restore: Restore, observed: Observation, verb: str, names: dict[int, str]) -> CreateObjects | None:
    assert observed.cluster  # noqa: S101
    missing = [each for each, name in names.items() if name not in observed.jobs]
    wanted = [restore_jobs.after(restore, observed.cluster, verb, each, observed.image) for each in missing]
    return CreateObjects(tuple(wanted)) if wanted else None


def _claims(observed: Observation, ordinals: list[int]) -> str:
    assert observed.cluster  # noqa: S101
    return ", ".join(f"data-{observed.cluster.pod_name(each)}" for each in ordinals)
