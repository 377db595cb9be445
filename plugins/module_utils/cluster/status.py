"""The status of an EtcdCluster and its events, as pure values."""

from __future__ import annotations

from typing import Any

from ..api.cluster import Cluster
from ..etcd.membership import quorum
from ..etcd.types import Member
from ..etcd.versions import parse
from ..etcd.view import Answer, ClusterView, MemberView
from ..kube.conditions import conditions
from ..kube.events import Event
from ..kube.quantity import rounded
from ..plan import Plan
from .alarms import worst
from .membership import ordinal_of
from .memory import Upgrade, recall, serving_record
from .operators import serving
from .operators import told as operators_told
from .plan import Phase
from .situation import Situation
from .upgrade import outcome


def status(s: Situation, plan: Plan, before: dict[str, Any]) -> dict[str, Any]:
    """The whole status; None for a field removes it."""
    cluster, observed, view = s.cluster, s.observed, s.observed.view
    members = _members(cluster, view)
    voters = [member for member in members if member["role"] != "learner"]
    versions = sorted({member["version"] for member in members if member.get("version")}, key=parse)
    answers = [answer for answer in view.answers.values() if isinstance(answer, Answer)]
    return {
        "phase": str(plan.phase),
        "message": plan.message,
        "observedGeneration": cluster.generation,
        "clusterID": observed.memory.cluster_id,
        "size": len(members) or len(observed.pods),
        "readyMembers": sum(member["healthy"] for member in members),
        "version": versions[0] if versions else None,  # during an upgrade, the older one
        "leader": next((member["name"] for member in members if member["role"] == "leader"), None),
        "selector": cluster.selector,
        "client": {
            "service": cluster.client_service,
            "endpoint": f"{cluster.scheme}://{cluster.client_service}.{cluster.namespace}.svc:2379",
            "secret": cluster.secret("client") if cluster.tls.enabled else None,
        },
        "clusterVersion": _series([answer.cluster_version for answer in answers]),
        "storageVersion": _series([answer.status.storage_version for answer in answers]),
        "members": members,
        "upgrade": before.get("upgrade"),
        **serving_record(serving(observed)),
        **plan.record,
        "conditions": _conditions(s, plan, voters, before),
    }


def events(cluster: Cluster, plan: Plan, before: dict[str, Any]) -> list[Event]:
    """One event for each transition, and for each action that is unlike the one before."""
    found = []
    upgrade = recall(plan.record).upgrade
    if upgrade and upgrade.completed:  # a plan records it once
        found.append(Event("Normal", *outcome(upgrade)))
    if before.get("phase") == Phase.RESTARTING and plan.phase is Phase.RUNNING:
        found.append(Event("Normal", "SettingsChanged", "Every member runs with the new settings."))
    progressing: dict[str, Any] = next((c for c in before.get("conditions", []) if c["type"] == "Progressing"), {})
    another = plan.action is not None and before.get("message") != plan.message
    if before.get("phase") != plan.phase or progressing.get("reason") != plan.reason or another:
        found.append(Event("Warning" if _warns(plan) else "Normal", str(plan.reason), plan.message))
    if (alarm := worst(_raised(plan, before))) and alarm[0] is not plan.reason:
        found.append(Event("Warning", str(alarm[0]), alarm[1]))
    if before.get("observedGeneration") != cluster.generation and cluster.size and cluster.size % 2 == 0:
        found.append(Event("Warning", "EvenSize", _even_size(cluster.size)))
    return found


def _raised(plan: Plan, before: dict[str, Any]) -> list[dict[str, str]]:
    """The alarms that were not reported before."""
    return [one for one in plan.record.get("alarms") or [] if one not in before.get("alarms", [])]


def _even_size(size: int) -> str:
    tolerated = size - quorum(size)
    return (
        f"{size} members tolerate the loss of {tolerated}, as {size - 1} do, and every write waits for one more. Use "
        "an odd spec.size."
    )


def _warns(plan: Plan) -> bool:
    return Phase(plan.phase).warning or plan.reason.warning


def _series(versions: list[str]) -> str | None:
    """The lowest of these, such as 3.6."""
    known = [parse(version) for version in versions if version]
    return min(known).series if known else None


def _members(cluster: Cluster, view: ClusterView) -> list[dict[str, Any]]:
    """The member list of a quorum, joined with live answers by member ID."""
    listed = view.members if view.quorum else ()
    leader = next((one.status.leader_id for one in listed if one.status and one.healthy), 0)
    entries = [_entry(cluster, one, leader) for one in listed]
    return sorted(entries, key=lambda entry: (len(entry["name"]), entry["name"]))


def _entry(cluster: Cluster, one: MemberView, leader: int) -> dict[str, Any]:
    role = "learner" if one.member.is_learner else "leader" if one.member.id == leader else "voter"
    entry: dict[str, Any] = {
        "name": _name(cluster, one.member),
        "id": f"{one.member.id:x}",
        "role": role,
        "healthy": bool(one.healthy),
    }
    if one.status:
        entry |= {
            "version": one.status.version,
            "dbSize": rounded(one.status.db_size),
            "dbSizeInUse": rounded(one.status.db_size_in_use),
        }
        entry |= {"quota": rounded(one.status.db_size_quota)} if one.status.db_size_quota else {}
    return entry


def _name(cluster: Cluster, member: Member) -> str:
    """A member that has not started yet has no name, but its pod has."""
    number = ordinal_of(cluster, member)
    return member.name or ("" if number is None else cluster.pod_name(number))


def _conditions(
    s: Situation, plan: Plan, members: list[dict[str, Any]], before: dict[str, Any]
) -> list[dict[str, Any]]:
    """Their messages are the plan's (health.py words it when members are not healthy) or an alarm's (alarms.py)."""
    observed = s.observed
    voters, healthy = len(members), sum(member["healthy"] for member in members)
    formed = bool(observed.memory.cluster_id or plan.record.get("clusterID"))
    reason, message = str(plan.reason), plan.message
    alarm = worst(plan.record.get("alarms") or ())
    if voters and healthy >= quorum(voters) and alarm:
        available = ("False", str(alarm[0]), alarm[1])
    elif voters and healthy >= quorum(voters):
        available = ("True", "QuorumHealthy", f"{healthy} of {voters} voters are healthy.")
    elif observed.view.needs_auth:
        available = ("Unknown", reason, message)
    elif formed and plan.phase not in (Phase.HIBERNATED, Phase.DELETING) and not observed.view.answered:
        available = ("Unknown", "NoAnswer", f"No member answers. {message}")
    else:
        available = ("False", reason, message)
    moving = plan.action is not None or Phase(plan.phase).moving
    degraded = _warns(plan) or bool(alarm) or (formed and 0 < healthy < voters)
    told = [
        ("Available", *available),
        ("Progressing", str(moving), reason, message),
        ("Degraded", str(degraded), *((str(alarm[0]), alarm[1]) if alarm else (reason, message))),
        *_upgraded(s, plan),
        *_backed_up(before),
        *_contested(s),
    ]
    return conditions(told, s.cluster.generation, before.get("conditions", []), observed.now)


def _upgraded(s: Situation, plan: Plan) -> list[tuple[str, str, str, str]]:
    """From the first upgrade on: whether every member runs spec.version."""
    upgrade: Upgrade | None = recall(plan.record).upgrade or s.observed.memory.upgrade
    if s.target or (upgrade and upgrade.in_progress):
        return [("Upgraded", "False", str(plan.reason), plan.message)]
    return [("Upgraded", "True", *outcome(upgrade))] if upgrade else []


def _contested(s: Situation) -> list[tuple[str, str, str, str]]:
    found = serving(s.observed)
    return [("OperatorConflict", "True", "TwoOperators", operators_told(found))] if found and found.contested else []


def _backed_up(before: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    if last := before.get("lastBackup"):
        told = f"EtcdBackup {last['name']} of {last['time']} holds revision {last['revision']}."
        return [("BackedUp", "True", "Succeeded", told)]
    if any(each["type"] == "BackedUp" for each in before.get("conditions", [])):
        return [("BackedUp", "False", "Deleted", "The last successful EtcdBackup was deleted, and there is no other.")]
    return []
