"""The snapshot before an upgrade. It fails closed: without a verified one no member moves. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

from ..api import backup as api
from ..kube import drift
from ..kube.manifest import Manifest
from ..plan import WATCHFUL, Plan, Ref
from . import foreign_objects
from .actions import DeleteSnapshot, TakeSnapshot
from .memory import Upgrade, upgrade_record
from .plan import Phase, Reason
from .situation import Situation

LABEL = "etcdops.dev/upgrade"  # on the EtcdBackup: the cluster
_RETRY = timedelta(minutes=1)  # after a snapshot that failed
_FRESH = timedelta(minutes=10)  # an older snapshot does not hold what there was before the upgrade
_LONGEST_NAME = 55  # of an EtcdBackup


def begin(s: Situation) -> Upgrade:
    """A new upgrade to the target, with the name of its snapshot."""
    return _named(s, Upgrade(s.version, s.target, s.observed.now))


def snapshot(s: Situation, upgrade: Upgrade, *, started: bool) -> Plan | None:
    """What is to be done about the snapshot; None when there is a verified one of this cluster.

    When etcd was told to prepare (`started`), the upgrade has begun, however long that takes: its snapshot counts.
    """
    if not s.cluster.upgrade.snapshot:
        unused = discard(s, upgrade)
        return replace(unused, phase=Phase.UPGRADING) if unused else None
    upgrade = upgrade if upgrade.snapshot else _named(s, replace(upgrade, started=s.observed.now))
    taking = Plan(
        Phase.UPGRADING,
        Reason.TAKING_SNAPSHOT,
        f"Taking a snapshot before the upgrade to {s.target}: EtcdBackup {upgrade.snapshot}.",
        record=upgrade_record(upgrade),
    )
    made = s.observed.objects.get(f"EtcdBackup/{upgrade.snapshot}")
    if made is None:
        refused = foreign_objects.refuse_backup(s, upgrade.snapshot, Phase.UPGRADING)
        taking = replace(taking, action=TakeSnapshot(backup_manifest(s, upgrade)))
        return replace(refused, record=taking.record) if refused else taking
    if "deletionTimestamp" in made["metadata"]:
        return taking
    match made.get("status", {}).get("phase"):
        case "Succeeded":
            return None if _is_usable(s, made, started=started) else _take_another(s, upgrade)
        case "Failed":
            return _failed(s, upgrade, made)
    return _follow(s, upgrade, made, taking)


def _follow(s: Situation, upgrade: Upgrade, made: Manifest, taking: Plan) -> Plan:
    if _is_outdated(s, upgrade, made):
        return replace(taking, action=_delete(made))
    return replace(taking, message=f"{taking.message} {made.get('status', {}).get('message', '')}".strip())


def _is_usable(s: Situation, made: Manifest, *, started: bool) -> bool:
    """Whether a snapshot is of this cluster, and recent if the upgrade has not begun."""
    status = made["status"]
    own = status.get("clusterID") == s.observed.memory.cluster_id
    return own and (started or s.observed.now - datetime.fromisoformat(status["completionTime"]) < _FRESH)


def discard(s: Situation, upgrade: Upgrade) -> Plan | None:
    """Delete a snapshot that did not succeed, when the upgrade was taken back or goes on without it."""
    made = s.observed.objects.get(f"EtcdBackup/{upgrade.snapshot}")
    if made is None or "deletionTimestamp" in made["metadata"] or made.get("status", {}).get("phase") == "Succeeded":
        return None
    message = f"Deleting EtcdBackup {upgrade.snapshot}: the upgrade to {upgrade.to} does not need it any more."
    return Plan(Phase.RUNNING, Reason.CLEANING_UP, message, _delete(made))


def expired(s: Situation) -> Plan | None:
    """Delete the snapshot of the last upgrade after spec.upgrade.snapshot.keepFor."""
    upgrade, keep_for = s.observed.memory.upgrade, s.cluster.upgrade.keep_for
    if (
        upgrade is None
        or upgrade.completed is None
        or keep_for is None
        or s.observed.now - upgrade.completed < keep_for
    ):
        return None
    made = s.observed.objects.get(f"EtcdBackup/{upgrade.snapshot}")
    if made is None:
        return None
    message = f"Deleting EtcdBackup {upgrade.snapshot}: it was kept for as long as spec.upgrade.snapshot.keepFor says."
    return Plan(Phase.RUNNING, Reason.CLEANING_UP, message, _delete(made))


def backup_manifest(s: Situation, upgrade: Upgrade) -> Manifest:
    """The EtcdBackup. Its data is deleted with it: as long as it exists, the data is kept."""
    cluster = s.cluster
    spec = {"cluster": cluster.name, "deletion": {"storage": "Delete"}, **cluster.upgrade.backup}
    labels = {LABEL: cluster.name, "app.kubernetes.io/managed-by": "etcdops"}
    return api.manifest(cluster.namespace, upgrade.snapshot, f"EtcdCluster/{cluster.name}", spec, labels=labels)


def _named(s: Situation, upgrade: Upgrade) -> Upgrade:
    """With a unique name for its snapshot."""
    if not s.cluster.upgrade.snapshot:
        return replace(upgrade, snapshot="")
    unique = hashlib.sha256(f"{s.cluster.uid} {upgrade.started.isoformat()}".encode()).hexdigest()[:5]
    name = f"{s.cluster.name}-before-{s.target.replace('.', '-')}-{unique}"
    # Never with a part of the name: that of another cluster may begin with the same part.
    name = name if len(name) <= _LONGEST_NAME else f"{s.cluster.name}-before-{unique}"
    return replace(upgrade, snapshot=name)


def _take_another(s: Situation, upgrade: Upgrade) -> Plan:
    again = _named(s, replace(upgrade, started=s.observed.now))
    message = f"Taking another snapshot before the upgrade to {s.target}: EtcdBackup {again.snapshot}."
    action = TakeSnapshot(backup_manifest(s, again))
    return Plan(Phase.UPGRADING, Reason.TAKING_SNAPSHOT, message, action, record=upgrade_record(again))


def _failed(s: Situation, upgrade: Upgrade, made: Manifest) -> Plan:
    why = made["status"].get("message", "")
    message = (
        f"Upgrade to {s.target} blocked: the snapshot before it failed. {why} It is tried again in a minute. Name "
        "another spec.upgrade.snapshot.destination, or set spec.upgrade.snapshot.mode to Skip."
    )
    record = upgrade_record(upgrade)
    failed = Plan(Phase.UPGRADING, Reason.SNAPSHOT_FAILED, message, requeue=WATCHFUL, record=record)
    waited = s.observed.now - api.ended_at(made) > _RETRY
    return replace(failed, action=_delete(made)) if waited or _is_outdated(s, upgrade, made) else failed


def _is_outdated(s: Situation, upgrade: Upgrade, made: Manifest) -> bool:
    """Whether the user asks for another kind of snapshot by now."""
    return drift.differs(backup_manifest(s, upgrade)["spec"], made["spec"])


def _delete(made: Manifest) -> DeleteSnapshot:
    return DeleteSnapshot(Ref(made["metadata"]["name"], made["metadata"].get("uid", "")))
