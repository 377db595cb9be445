"""What is told: the status of an EtcdCluster and the events, as pure values."""

from __future__ import annotations

from typing import Any

from ..api.cluster import Cluster
from ..etcd.membership import quorum
from ..etcd.types import Member
from ..etcd.versions import parse
from ..kube.conditions import conditions, time_text
from ..kube.events import Event
from ..kube.quantity import rounded
from .observation import Join, Observed, Upgrade
from .plan import Phase, Plan, Step
from .scaling import join_of
from .slots import gather, ordinal
from .upgrade import outcome, released

_MOVING = {
    Phase.BOOTSTRAPPING,
    Phase.STARTING,
    Phase.SCALING,
    Phase.REPAIRING,
    Phase.UPGRADING,
    Phase.RESTARTING,
    Phase.EXPANDING,
}
_WARNINGS = {Phase.DEGRADED, Phase.QUORUM_LOST, Phase.UNSUPPORTED}
_STOPPED = {"UpgradeWaits", "SnapshotFailed", "RollStopped"}  # a person must do something


def status(cluster: Cluster, seen: Observed, plan: Plan, before: dict[str, Any]) -> dict[str, Any]:
    """The whole status; None for a field means that it goes."""
    members = _members(cluster, seen)
    healthy = [member for member in members if member["healthy"]]
    voters = [member for member in members if member["role"] != "learner"]
    leader = next((member["name"] for member in members if member["role"] == "leader"), None)
    versions = sorted({member["version"] for member in members if member.get("version")}, key=parse)
    noted = plan.upgrade or seen.upgrade
    return {
        "phase": str(plan.phase),
        "message": plan.message,
        "observedGeneration": cluster.generation,
        "clusterID": seen.cluster_id or plan.cluster_id,
        "size": len(members) or len(seen.pods),
        "readyMembers": len(healthy),
        "version": versions[0] if versions else None,  # in the middle of an upgrade, the older one
        "leader": leader,
        "selector": cluster.selector,
        "client": {
            "service": cluster.client_service,
            "endpoint": f"{cluster.scheme}://{cluster.client_service}.{cluster.namespace}.svc:2379",
            "secret": cluster.secret("client") if cluster.tls.enabled else None,
        },
        "clusterVersion": _series([a.cluster_version for a in seen.answers.values()]),
        "storageVersion": _series([a.status.storage_version for a in seen.answers.values() if a.status]),
        "members": members,
        "upgrade": _upgrade(noted) if noted else None,
        "join": _noted(join_of(cluster, seen, gather(cluster, seen), plan)),
        "conditions": _conditions(cluster, seen, plan, voters, before),
    }


def events(cluster: Cluster, plan: Plan, before: dict[str, Any]) -> list[Event]:
    """One event for each transition, and for each step that is unlike the one before."""
    found = []
    if plan.upgrade and plan.upgrade.completed:  # a plan has it once
        found.append(Event("Normal", *outcome(plan.upgrade)))
    if before.get("phase") == Phase.RESTARTING and plan.phase is Phase.RUNNING:
        found.append(Event("Normal", "SettingsChanged", "Every member runs with the new settings."))
    progressing: dict[str, Any] = next((c for c in before.get("conditions", []) if c["type"] == "Progressing"), {})
    another = plan.step is not Step.IDLE and before.get("message") != plan.message  # of several, one by one
    if before.get("phase") != plan.phase or progressing.get("reason") != plan.reason or another:
        found.append(Event("Warning" if _warns(plan) else "Normal", plan.reason, plan.message))
    if before.get("observedGeneration") != cluster.generation and cluster.size and cluster.size % 2 == 0:
        tolerated = cluster.size - quorum(cluster.size)
        message = (
            f"{cluster.size} members tolerate the loss of {tolerated}, no more than {cluster.size - 1} do, and every "
            "write waits for one more; use an odd size."
        )
        found.append(Event("Warning", "EvenSize", message))
    return found


def _warns(plan: Plan) -> bool:
    return plan.phase in _WARNINGS or plan.reason in _STOPPED


def _series(versions: list[str]) -> str | None:
    """The lowest of these, such as 3.6."""
    known = [parse(version) for version in versions if version]
    return min(known).series if known else None


def _upgrade(noted: Upgrade) -> dict[str, Any]:
    return {
        "from": noted.source,
        "to": noted.to,
        "started": time_text(noted.started),
        "snapshot": noted.snapshot or None,
        "logReady": noted.log_ready or None,
        "completed": time_text(noted.completed) if noted.completed else None,
    }


def _noted(join: Join | None) -> dict[str, Any] | None:
    if join is None:
        return None
    noted: dict[str, Any] = {"member": join.member, "since": time_text(join.since)}
    return noted | ({"failed": True, "generation": join.generation} if join.failed else {})


def _members(cluster: Cluster, seen: Observed) -> list[dict[str, Any]]:
    """Joined by member ID; from live answers only."""
    answers = {a.status.member_id: a for a in seen.answers.values() if a.status}
    leader = next((a.status.leader_id for a in seen.answers.values() if a.status and a.healthy), 0)
    members = []
    for member in seen.members.members if seen.members else ():
        answer = answers.get(member.id)
        role = "learner" if member.is_learner else "leader" if member.id == leader else "voter"
        entry: dict[str, Any] = {
            "name": _name(cluster, member),
            "id": f"{member.id:x}",
            "role": role,
            "healthy": answer is not None and answer.healthy,
        }
        if answer and answer.status:
            entry |= {"version": answer.status.version, "dbSize": rounded(answer.status.db_size)}
        members.append(entry)
    return sorted(members, key=lambda entry: (len(entry["name"]), entry["name"]))


def _name(cluster: Cluster, member: Member) -> str:
    """A member that has not started yet has no name, but its pod has."""
    number = ordinal(cluster, member)
    return member.name or ("" if number is None else cluster.pod_name(number))


def _conditions(
    cluster: Cluster, seen: Observed, plan: Plan, members: list[dict[str, Any]], before: dict[str, Any]
) -> list[dict[str, Any]]:
    voters, healthy = len(members), sum(member["healthy"] for member in members)
    formed = bool(seen.cluster_id or plan.cluster_id)
    if voters and healthy >= quorum(voters):
        available = ("True", "QuorumServes", f"{healthy} of {voters} voters serve.")
    elif (
        formed
        and plan.phase not in (Phase.HIBERNATED, Phase.DELETING)
        and not any(answer.status for answer in seen.answers.values())
    ):
        available = ("Unknown", "NoAnswer", f"No member answers. {plan.message}")
    else:
        available = ("False", plan.reason, plan.message)
    moving = plan.step is not Step.IDLE or plan.phase in _MOVING
    degraded = _warns(plan) or (formed and 0 < healthy < voters)
    said = [
        ("Available", *available),
        ("Progressing", str(moving), plan.reason, plan.message),
        ("Degraded", str(degraded), plan.reason, plan.message),
    ]
    said += _upgraded(cluster, seen, plan)
    if last := before.get("lastBackup"):
        told = f"EtcdBackup {last['name']} of {last['time']} holds revision {last['revision']}."
        said.append(("BackedUp", "True", "Succeeded", told))
    elif any(each["type"] == "BackedUp" for each in before.get("conditions", [])):
        said.append(("BackedUp", "False", "Deleted", "The last good EtcdBackup was deleted, and there is no other."))
    return conditions(said, cluster.generation, before.get("conditions", []), seen.now)


def _upgraded(cluster: Cluster, seen: Observed, plan: Plan) -> list[tuple[str, str, str, str]]:
    """From the first upgrade on: does every member run what is asked for?"""
    noted, have = plan.upgrade or seen.upgrade, released(cluster, seen)
    pending = seen.cluster_id is not None and have not in ("", cluster.version)
    if pending or (noted and noted.completed is None):
        return [("Upgraded", "False", plan.reason, plan.message)]
    return [("Upgraded", "True", *outcome(noted))] if noted else []
