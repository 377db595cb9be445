"""Moving to another version: may it be, is everybody well, is there a snapshot to go back to.

Until all of that is so, pods keep the version they have: what is rendered is for the *held* version. What happens then
is a roll like any other (roll.py).
"""

from __future__ import annotations

from dataclasses import replace

from . import manifests
from .kube import Manifest
from .observed import Observed
from .plan import WATCHFUL, Phase, Plan, Step
from .spec import Cluster
from .team import Team
from .versions import parse, refusal


def held(cluster: Cluster, seen: Observed) -> Cluster:
    """The cluster with the version that its pods may have now."""
    live = _live_version(cluster, seen)
    if live is None or cluster.version in (live, seen.cleared) or _corrects(cluster, seen, live):
        return cluster
    return replace(cluster, version=live, target=cluster.version)


def _corrects(cluster: Cluster, seen: Observed, live: str) -> bool:
    """Is a roll under way, and only its goal put right? Its snapshot is there; and it may be why somebody is not well.

    Back to what some still run, or on to another patch of what the others have moved to.
    """
    running = [parse(answer.status.version) for answer in seen.answers.values() if answer.status]
    goal, current = parse(cluster.version), parse(live)
    if not running or min(running) >= current:
        return False
    return goal == min(running) or (goal > min(running) and goal.minor == current.minor)


def prepare(cluster: Cluster, seen: Observed, team: Team) -> Plan | None:
    """What must be done before the first member moves; None when no other version is asked for."""
    if not cluster.target:
        return None
    running = {seat.version for seat in team.voters if seat.version}
    if why := refusal(running, cluster.target):
        return Plan(Phase.UNSUPPORTED, "VersionRefused", f"spec.version is {cluster.target}. {why}", requeue=WATCHFUL)
    if alarms := sorted({error for seat in team.voters for error in seat.errors}):
        message = f"The upgrade to {cluster.target} waits until this is mended: {', '.join(alarms)}."
        return Plan(Phase.DEGRADED, "UpgradeWaits", message, requeue=WATCHFUL)
    if cluster.upgrade.snapshot == "Off":
        return _clear(cluster, f"Going to {cluster.target} without a snapshot, as spec.upgrade.snapshot says.")
    return _snapshot(cluster, seen)


def _snapshot(cluster: Cluster, seen: Observed) -> Plan:
    """Fails closed: without a snapshot that was checked nothing moves."""
    wanted = manifests.upgrade_snapshot(cluster)
    name = wanted[-1]["metadata"]["name"]
    found: Manifest | None = seen.objects.get(f"EtcdBackup/{name}")
    status = (found or {}).get("status", {})
    match status.get("phase"):
        case "Succeeded":
            where = status.get("location", name)
            return _clear(cluster, f"There is a snapshot before {cluster.target}: {where}.")
        case "Failed":
            message = (
                f"The snapshot before {cluster.target} failed, so nothing moves: {status.get('message', '')} Mend that "
                f"and delete EtcdBackup {name} to try again, or set spec.upgrade.snapshot to Off."
            )
            return Plan(Phase.DEGRADED, "SnapshotFailed", message, requeue=WATCHFUL)
    message = f"Taking a snapshot before {cluster.target} (EtcdBackup {name})."
    missing = () if found else tuple(wanted)
    return Plan(Phase.UPGRADING, "TakingSnapshot", message, Step.UPDATE if missing else Step.IDLE, apply=missing)


def _clear(cluster: Cluster, message: str) -> Plan:
    return Plan(Phase.UPGRADING, "UpgradeStarts", message, cleared=cluster.target)


def _live_version(cluster: Cluster, seen: Observed) -> str | None:
    """What the StatefulSet gives new pods."""
    live = seen.objects.get(f"StatefulSet/{cluster.name}")
    if live is None:
        return None
    image: str = live["spec"]["template"]["spec"]["containers"][0]["image"]
    version = image.rpartition(":v")[2]
    return version if version.count(".") == 2 else None
