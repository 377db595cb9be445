"""Deleting an EtcdCluster: a final snapshot if wanted, then its PVCs if wanted. Pure.

While the final snapshot can't be taken, nothing is deleted. Everything else is deleted by Kubernetes with its owner.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from ..api.backup import ended_at
from ..api.backup import manifest as backup_manifest
from ..api.cluster import SKIP_FINAL_SNAPSHOT, Cluster
from ..kube.manifest import Manifest
from ..plan import SETTLED, WATCHFUL, Plan, Ref
from . import foreign_objects
from .actions import DeleteSnapshot, DeleteVolumes, TakeSnapshot
from .plan import Phase, Reason
from .situation import Situation

_RETRY = timedelta(minutes=1)  # after a final snapshot that failed
_SKIP = f"To delete this EtcdCluster without it, set the annotation {SKIP_FINAL_SNAPSHOT}=true."


def delete(s: Situation) -> Plan:
    """The next step of the finalizer."""
    return _final_snapshot(s) or _volumes(s)


def abandoned(_: Cluster) -> Plan:
    """The plan instead, when the namespace is being deleted: nothing can be created there, and nothing is held up."""
    message = "The namespace is being deleted, so no final snapshot can be taken."
    return Plan(Phase.DELETING, Reason.DELETING, message, finalized=True)


def gone(name: str) -> Plan:
    """The EtcdCluster was deleted before this reconcile."""
    return Plan(Phase.DELETING, Reason.GONE, f"EtcdCluster {name} is gone.", requeue=SETTLED, finalized=True)


def final_snapshot_name(cluster: Cluster) -> str:
    return f"{cluster.name}-final-{cluster.uid[:8]}"


def wants_final_snapshot(cluster: Cluster) -> bool:
    """Whether the deletion waits for it."""
    return bool(cluster.final_snapshot) and not cluster.skip_final_snapshot


def _final_snapshot(s: Situation) -> Plan | None:
    """What is to be done about the final snapshot; None when there is one, or none is wanted or possible."""
    has_data = s.observed.memory.cluster_id is not None or s.cluster.restored
    name = final_snapshot_name(s.cluster)
    made = s.observed.objects.get(f"EtcdBackup/{name}")
    if not wants_final_snapshot(s.cluster) or not has_data:
        return _discard(made)
    if refused := foreign_objects.refuse_backup(s, name, Phase.DELETING):
        return replace(refused, message=f"{refused.message} {_SKIP}")
    if made is None:
        message = f"Taking a final snapshot: EtcdBackup {name}."
        return Plan(Phase.DELETING, Reason.FINAL_SNAPSHOT, message, TakeSnapshot(_manifest(s.cluster)), WATCHFUL)
    status = made.get("status", {})
    if status.get("phase") == "Succeeded":
        return None
    if status.get("phase") == "Failed":
        return _failed(s, made)
    message = f"Waiting for the final snapshot, EtcdBackup {name}: {status.get('message', 'not started yet.')} {_SKIP}"
    return Plan(Phase.DELETING, Reason.FINAL_SNAPSHOT, message, requeue=WATCHFUL)


def _discard(made: Manifest | None) -> Plan | None:
    """Delete a final snapshot that did not succeed and that nobody wants any more."""
    if made is None or "deletionTimestamp" in made["metadata"] or made.get("status", {}).get("phase") == "Succeeded":
        return None
    message = f"Deleting EtcdBackup {made['metadata']['name']}: the final snapshot is skipped."
    return Plan(Phase.DELETING, Reason.DELETING, message, DeleteSnapshot(_ref(made)))


def _ref(made: Manifest) -> Ref:
    return Ref(made["metadata"]["name"], made["metadata"].get("uid", ""))


def _failed(s: Situation, made: Manifest) -> Plan:
    told = made["status"].get("message", "")
    message = f"The final snapshot failed: {told} Nothing is deleted, and it is tried again. {_SKIP}"
    moved = made["spec"]["destination"] != s.cluster.final_snapshot["destination"]
    waited = s.observed.now - ended_at(made) > _RETRY
    again = DeleteSnapshot(_ref(made)) if moved or waited else None
    return Plan(Phase.DELETING, Reason.FINAL_SNAPSHOT_FAILED, message, again, WATCHFUL)


def _volumes(s: Situation) -> Plan:
    own = (claim for claim in s.observed.claims if claim.cluster_uid == s.cluster.uid and not claim.deleting)
    claims = tuple(Ref(claim.name, claim.uid) for claim in own) if s.cluster.delete_storage else ()
    if not claims:
        return Plan(Phase.DELETING, Reason.DELETING, "The cluster is being deleted.", finalized=True)
    message = f"Deleting PVC {', '.join(claim.name for claim in claims)}, as spec.deletion.storage says."
    return Plan(Phase.DELETING, Reason.DELETING, message, DeleteVolumes(claims), finalized=True)


def _manifest(cluster: Cluster) -> Manifest:
    spec = {"cluster": cluster.name, **cluster.final_snapshot}
    name = final_snapshot_name(cluster)
    return backup_manifest(cluster.namespace, name, f"EtcdCluster/{cluster.name}", spec)
