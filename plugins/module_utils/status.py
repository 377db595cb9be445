"""What is told: the status of an EtcdCluster and the events, as pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .manifests import quorum
from .observed import Observed
from .planner import Phase, Plan, Step
from .quantity import rounded
from .spec import Cluster

_WARNINGS = {Phase.DEGRADED, Phase.QUORUM_LOST, Phase.UNSUPPORTED}


@dataclass(frozen=True)
class Event:
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def status(cluster: Cluster, seen: Observed, plan: Plan, before: dict[str, Any]) -> dict[str, Any]:
    """The whole status; None for a field means that it goes."""
    members = _members(seen)
    healthy = [member for member in members if member["healthy"]]
    leader = next((member["name"] for member in members if member["role"] == "leader"), None)
    versions = sorted({member["version"] for member in members if member.get("version")})
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
        "members": members,
        "conditions": _conditions(cluster, seen, plan, len(healthy), before.get("conditions", [])),
    }


def differs(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Would writing the new status change anything?"""
    return any(
        differs(value, old.get(key) or {}) if isinstance(value, dict) else value != old.get(key)
        for key, value in new.items()
    )


def events(cluster: Cluster, plan: Plan, before: dict[str, Any]) -> list[Event]:
    """One event for each transition."""
    found = []
    progressing: dict[str, Any] = next((c for c in before.get("conditions", []) if c["type"] == "Progressing"), {})
    if before.get("phase") != plan.phase or progressing.get("reason") != plan.reason:
        found.append(Event("Warning" if plan.phase in _WARNINGS else "Normal", plan.reason, plan.message))
    if before.get("observedGeneration") != cluster.generation and cluster.size and cluster.size % 2 == 0:
        tolerated = cluster.size - quorum(cluster.size)
        message = (
            f"{cluster.size} members tolerate the loss of {tolerated}, no more than {cluster.size - 1} do, and every "
            "write waits for one more; use an odd size."
        )
        found.append(Event("Warning", "EvenSize", message))
    return found


def _members(seen: Observed) -> list[dict[str, Any]]:
    """Joined by member ID; from live answers only."""
    answers = {a.status.member_id: a for a in seen.answers.values() if a.status}
    leader = next((a.status.leader_id for a in seen.answers.values() if a.status and a.healthy), 0)
    members = []
    for member in sorted(seen.members.members, key=lambda m: (len(m.name), m.name)) if seen.members else []:
        answer = answers.get(member.id)
        role = "learner" if member.is_learner else "leader" if member.id == leader else "voter"
        entry: dict[str, Any] = {
            "name": member.name,
            "id": f"{member.id:x}",
            "role": role,
            "healthy": answer is not None and answer.healthy,
        }
        if answer and answer.status:
            entry |= {"version": answer.status.version, "dbSize": rounded(answer.status.db_size)}
        members.append(entry)
    return members


def _conditions(
    cluster: Cluster, seen: Observed, plan: Plan, healthy: int, before: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    voters = sum(not member.is_learner for member in seen.members.members) if seen.members else 0
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
    moving = plan.step is not Step.IDLE or plan.phase in (Phase.BOOTSTRAPPING, Phase.STARTING)
    degraded = plan.phase in _WARNINGS or (formed and 0 < healthy < voters)
    said = (
        ("Available", *available),
        ("Progressing", str(moving), plan.reason, plan.message),
        ("Degraded", str(degraded), plan.reason, plan.message),
    )
    now, since = seen.now.strftime("%Y-%m-%dT%H:%M:%SZ"), {c["type"]: c for c in before}
    return [
        {
            "type": kind,
            "status": state,
            "reason": reason,
            "message": message,
            "observedGeneration": cluster.generation,
            "lastTransitionTime": since[kind]["lastTransitionTime"]
            if since.get(kind, {}).get("status") == state
            else now,
        }
        for kind, state, reason, message in said
    ]
