"""Another version: may it be, is everybody well, is there a snapshot to go back to, is etcd ready for it. Pure.

Until all of that is so, pods keep the version that they have, also those that restart: what is rendered is what was
released before. What happens then is a roll like any other (roll.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from ..api import backup
from ..api.cluster import Cluster
from ..etcd.versions import downgrade_to, drops_log_of, news, of_image, parse, refusal
from ..kube.manifest import Manifest
from . import desired, manifests
from .observation import Observed, Upgrade
from .plan import WATCHFUL, Phase, Plan, Step
from .slots import Team, stranger_name

LABEL = "etcdops.dev/upgrade"  # of the EtcdBackup: the cluster
_AGAIN = timedelta(minutes=1)  # until a snapshot that failed is tried again
_FRESH = timedelta(minutes=10)  # a snapshot that is older than that does not tell what there was before
_NAME = 55  # so long may the name of an EtcdBackup be

Objects = Callable[[Cluster], desired.Manifests]


def released(cluster: Cluster, seen: Observed) -> str:
    """The version that new pods run; "" when nothing tells."""
    if live := seen.objects.get(f"StatefulSet/{cluster.name}"):
        return of_image(live["spec"]["template"]["spec"]["containers"][0]["image"])
    config_map = seen.objects.get(f"ConfigMap/{cluster.config_map}", {})
    noted: str = (config_map.get("metadata", {}).get("annotations") or {}).get(manifests.VERSION, "")
    return noted


def held(cluster: Cluster, seen: Observed) -> Cluster:
    """The cluster with the version that its pods may have now."""
    have = released(cluster, seen)
    if not have or have == cluster.version:
        return cluster
    return replace(cluster, version=have, target=cluster.version)


def corrected(cluster: Cluster, seen: Observed) -> Cluster:
    """When no quorum tells what members run: the goal of an upgrade that is under way may be put right, or taken back.

    Pods may be unable to start because of it, all of them if they were stopped in the middle.
    """
    noted = under_way(seen)
    if not cluster.target or noted is None or noted.source == cluster.version:
        return cluster
    goal, source = parse(cluster.target), parse(noted.source)
    if goal != source and goal.minor != parse(cluster.version).minor:
        return cluster
    return replace(cluster, version=cluster.target, target="")


def under_way(seen: Observed) -> Upgrade | None:
    return seen.upgrade if seen.upgrade and seen.upgrade.completed is None else None


def already_under_way(cluster: Cluster, seen: Observed, team: Team) -> Upgrade | None:
    """Was the version put right while the members started for the first time with another one?"""
    runs = min(team.versions, key=parse, default=cluster.version)
    return Upgrade(runs, cluster.version, seen.now) if runs != cluster.version else None


def prepare(cluster: Cluster, seen: Observed, team: Team, objects: Objects) -> Plan | None:
    """What must be done before the first member moves, or the last thing: pods may have the version from now on.

    None when that is not the moment. `objects` are those that must change for a cluster.
    """
    voting = [member for member in team.strangers if not member.is_learner]
    silent = any(not seat.version for seat in team.voters) or bool(voting)
    if why := refusal(
        team.versions,
        cluster.target,
        cluster_version=team.cluster_version,
        silent=silent,
        allow_downgrade=cluster.upgrade.allow_downgrade,
    ):
        message = f"spec.version is {cluster.target}, and that can't be. {why}"
        return Plan(Phase.UNSUPPORTED, "VersionRefused", message, requeue=WATCHFUL)
    noted = under_way(seen)
    if noted and noted.source != cluster.version:  # on its way already: only the goal is put right, or taken back
        if parse(cluster.target).minor not in (parse(noted.source).minor, parse(cluster.version).minor):
            message = (
                f"The way to {cluster.target} waits until every member runs {cluster.version}, or {noted.source} again."
            )
            return Plan(Phase.UPGRADING, "UpgradeWaits", message, requeue=WATCHFUL)
        noted = replace(noted, to=cluster.target)
        return _ready(cluster, team, noted) or _release(cluster, noted, objects, f"Going to {cluster.target} instead.")
    if team.learners or (team.unwell and not voting):
        return None
    if cluster.storage.type == "Memory" and team.votes < 2:
        message = (
            f"spec.version is {cluster.target}, but the only member has its data in memory: grow the cluster first."
        )
        return Plan(Phase.UNSUPPORTED, "VersionRefused", message, requeue=WATCHFUL)
    noted = replace(noted, to=cluster.target) if noted else _begin(cluster, seen)
    return (
        _alarm(cluster, team)
        or _snapshot(cluster, seen, noted, told=bool(team.downgrade) or noted.log_ready)
        or _ready(cluster, team, noted)
        or _release(cluster, noted, objects, _told(cluster, noted))
    )


def _begin(cluster: Cluster, seen: Observed) -> Upgrade:
    return _named(cluster, Upgrade(cluster.version, cluster.target, seen.now))


def _named(cluster: Cluster, noted: Upgrade) -> Upgrade:
    """With the name of its snapshot, which is unlike any other."""
    if not cluster.upgrade.snapshot:
        return replace(noted, snapshot="")
    unique = hashlib.sha256(f"{cluster.uid} {noted.started.isoformat()}".encode()).hexdigest()[:5]
    suffix = f"-before-{cluster.target.replace('.', '-')}-{unique}"
    return replace(noted, snapshot=f"{cluster.name[: _NAME - len(suffix)].rstrip('-')}{suffix}")


def _alarm(cluster: Cluster, team: Team) -> Plan | None:
    said = {error for seat in team.voters if seat.answer and seat.answer.status for error in seat.answer.status.errors}
    said |= {f"{stranger_name(member)} is none of our members" for member in team.strangers}
    if not said:
        return None
    message = f"The way to {cluster.target} waits until this is mended: {'; '.join(sorted(said))}."
    return Plan(Phase.UPGRADING, "UpgradeWaits", message, requeue=WATCHFUL)


# -- the snapshot


def snapshot_manifest(cluster: Cluster, noted: Upgrade) -> Manifest:
    """The EtcdBackup. Its data goes with it: as long as it is there, it is kept."""
    spec = {"cluster": cluster.name, "deletion": {"storage": "Delete"}, **cluster.upgrade.backup}
    labels = {LABEL: cluster.name, "app.kubernetes.io/managed-by": "etcdops"}
    return backup.manifest(cluster.namespace, noted.snapshot, f"EtcdCluster/{cluster.name}", spec, labels=labels)


def _snapshot(cluster: Cluster, seen: Observed, noted: Upgrade, *, told: bool) -> Plan | None:
    """Fails closed: without a snapshot of this cluster that was checked nothing moves. None when there is one.

    When etcd has been `told` to get ready, the upgrade has begun, however long that takes: it is the one from before.
    """
    if not cluster.upgrade.snapshot:
        return None
    noted = noted if noted.snapshot else _named(cluster, replace(noted, started=seen.now))
    made = seen.objects.get(f"EtcdBackup/{noted.snapshot}")
    taking = Plan(
        Phase.UPGRADING,
        "TakingSnapshot",
        f"Taking a snapshot before {cluster.target}: EtcdBackup {noted.snapshot}.",
        upgrade=noted,
    )
    if made is None:
        return replace(taking, step=Step.SNAPSHOT, apply=(snapshot_manifest(cluster, noted),))
    status = made.get("status", {})
    if "deletionTimestamp" in made["metadata"]:
        return taking
    match status.get("phase"):
        case "Succeeded":
            known = status.get("clusterID") == seen.cluster_id
            fresh = told or seen.now - datetime.fromisoformat(status["completionTime"]) < _FRESH
            again = _named(cluster, replace(noted, started=seen.now))
            return None if known and fresh else replace(_snapshot_again(cluster, again), delete_backups=())
        case "Failed":
            return _failed(cluster, seen, noted, made)
    told_by = replace(taking, message=f"{taking.message} {status.get('message', '')}".strip())
    elsewhere = replace(taking, step=Step.SNAPSHOT, delete_backups=(noted.snapshot,))
    return elsewhere if _is_elsewhere(cluster, noted, made) else told_by


def _is_elsewhere(cluster: Cluster, noted: Upgrade, made: Manifest) -> bool:
    """Does the user want the snapshot otherwise by now?"""
    return manifests.differs(snapshot_manifest(cluster, noted)["spec"], made["spec"])


def _snapshot_again(cluster: Cluster, noted: Upgrade) -> Plan:
    message = f"Taking another snapshot before {cluster.target}: EtcdBackup {noted.snapshot}."
    apply = (snapshot_manifest(cluster, noted),)
    return Plan(Phase.UPGRADING, "TakingSnapshot", message, Step.SNAPSHOT, apply=apply, upgrade=noted)


def _failed(cluster: Cluster, seen: Observed, noted: Upgrade, made: Manifest) -> Plan:
    message = (
        f"The snapshot before {cluster.target} failed, so nothing moves: {made['status'].get('message', '')} It is "
        "tried again in a minute; name another place in spec.upgrade.snapshot.destination, or set "
        "spec.upgrade.snapshot.mode to Skip to go without."
    )
    failed = Plan(Phase.UPGRADING, "SnapshotFailed", message, upgrade=noted, requeue=WATCHFUL)
    waited = seen.now - backup.ended_at(made) > _AGAIN
    if waited or _is_elsewhere(cluster, noted, made):
        return replace(failed, step=Step.SNAPSHOT, delete_backups=(noted.snapshot,))
    return failed


def outdated(cluster: Cluster, seen: Observed) -> Plan | None:
    """Is a snapshot to go, after as long as the user said?"""
    noted, keep_for = seen.upgrade, cluster.upgrade.keep_for
    if noted is None or noted.completed is None or keep_for is None or seen.now - noted.completed < keep_for:
        return None
    if f"EtcdBackup/{noted.snapshot}" not in seen.objects:
        return None
    message = f"EtcdBackup {noted.snapshot} was kept for as long as spec.upgrade.snapshot.keepFor says, and goes."
    return Plan(Phase.RUNNING, "TidyingUp", message, Step.SNAPSHOT, delete_backups=(noted.snapshot,))


# -- what etcd itself must do


def _ready(cluster: Cluster, team: Team, noted: Upgrade) -> Plan | None:
    """Is there something that etcd must do before members can move?"""
    goal, reached = parse(cluster.target), team.cluster_version
    down = downgrade_to(team.versions, cluster.target, reached)
    if down:
        return _downgrade(team, noted, down)
    if team.downgrade and parse(team.downgrade).minor == goal.minor:
        return _lowered(team, noted, goal.series)
    old = drops_log_of(team.versions, cluster.target)
    if old and not noted.log_ready:
        return _drop_log(cluster, team, noted, old)
    if team.downgrade:
        message = f"Going to {cluster.target}, so etcd is told that no downgrade to {team.downgrade} is meant."
        return Plan(Phase.UPGRADING, "CancellingDowngrade", message, Step.DOWNGRADE, upgrade=noted)
    if old and reached and parse(reached).minor < goal.minor - 1:
        message = (
            f"Waiting for etcd to agree on {goal.major}.{goal.minor - 1} again; so far it has {parse(reached).series}."
        )
        return Plan(Phase.UPGRADING, "PreparingLog", message, upgrade=noted)
    return None


def _downgrade(team: Team, noted: Upgrade, down: str) -> Plan:
    if team.downgrade:
        return _lowered(team, noted, down) or Plan(
            Phase.UPGRADING, "EnablingDowngrade", f"Waiting for etcd to agree on {down}.", upgrade=noted
        )
    message = f"Having etcd get ready for {down}: what only a later version can read goes."
    return Plan(Phase.UPGRADING, "EnablingDowngrade", message, Step.DOWNGRADE, downgrade=down, upgrade=noted)


def _lowered(team: Team, noted: Upgrade, down: str) -> Plan | None:
    """Every member's data must be such that the older version can read it."""
    high = [
        seat.name
        for seat in team.voters
        if seat.answer and seat.answer.status and (stored := seat.answer.status.storage_version)
        if parse(stored).minor > parse(down).minor
    ]
    if not high:
        return None
    message = f"Waiting for the data of {', '.join(high)} to be such that {down} can read it."
    return Plan(Phase.UPGRADING, "EnablingDowngrade", message, upgrade=noted)


def _drop_log(cluster: Cluster, team: Team, noted: Upgrade, old: str) -> Plan:
    """Each member takes a snapshot of its own, and drops the log before it, when the cluster's version goes down."""
    why = f"{parse(cluster.target).series} can't read what {old} wrote to the members' logs, so they drop it first"
    plan = Plan(Phase.UPGRADING, "PreparingLog", f"{why}.", upgrade=noted)
    if not team.downgrade:
        return replace(plan, step=Step.DOWNGRADE, downgrade=old)
    told = [seat.answer.cluster_version for seat in team.voters if seat.answer]
    if all(version and parse(version).series == old for version in told) and not team.unwell:
        done = replace(noted, log_ready=True)
        return replace(plan, message=f"{why}; they have.", step=Step.DOWNGRADE, upgrade=done)
    return plan


# -- the beginning and the end


def _release(cluster: Cluster, noted: Upgrade, objects: Objects, message: str) -> Plan:
    """From here on pods that restart have the version."""
    going = replace(cluster, version=cluster.target, target="")
    return Plan(Phase.UPGRADING, "UpgradeStarts", message, Step.UPDATE, apply=objects(going), upgrade=noted)


def _told(cluster: Cluster, noted: Upgrade) -> str:
    way = f"Every member goes from {noted.source} to {cluster.target}, one at a time."
    if not cluster.upgrade.snapshot:
        return f"{way} There is no snapshot, as spec.upgrade.snapshot.mode says."
    return f"{way} EtcdBackup {noted.snapshot} has what was before."


def finish(cluster: Cluster, seen: Observed, team: Team, well: Plan) -> Plan:
    """All members serve, and none is to restart: is the upgrade done that was under way?"""
    noted = under_way(seen)
    if noted is None or cluster.target:
        return well
    noted = replace(noted, to=cluster.version)
    goal, reached = parse(cluster.version), team.cluster_version
    other = [f"{seat.name} {seat.version}" for seat in team.voters if seat.version != cluster.version]
    if other:
        message = f"Waiting for every member to report {cluster.version}; so far {', '.join(other)}."
        return Plan(Phase.UPGRADING, "WaitingForMember", message, upgrade=noted)
    if team.downgrade and parse(team.downgrade).minor < goal.minor:
        message = (
            f"Every member runs {cluster.version}, so etcd is told that no downgrade to {team.downgrade} is meant."
        )
        return Plan(Phase.UPGRADING, "CancellingDowngrade", message, Step.DOWNGRADE, upgrade=noted)
    if reached and parse(reached).minor != goal.minor:
        message = f"Every member runs {cluster.version}; etcd's cluster version is {reached} and has yet to follow."
        return Plan(Phase.UPGRADING, "WaitingForClusterVersion", message, upgrade=noted)
    return replace(well, upgrade=replace(noted, completed=seen.now))


def outcome(noted: Upgrade) -> tuple[str, str]:
    """A word and a sentence for an upgrade that is done."""
    source, to = parse(noted.source), parse(noted.to)
    if source == to:
        return "RolledBack", f"Every member runs {noted.to} again."
    if to < source:
        return "Downgraded", f"Every member runs {noted.to} now; it was {noted.source}."
    brings = f" {to.series} brings {news(noted.to)}." if to.minor > source.minor else ""
    return "Upgraded", f"Every member runs {noted.to} now; it was {noted.source}.{brings}"
