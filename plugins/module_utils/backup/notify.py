"""What the EtcdCluster's own status says of its last successful backup."""

from __future__ import annotations

from typing import Any

from ..api.backup import Backup
from ..kube.client import Kube
from ..plan import Plan
from .plan import Phase
from .planner import last_good, outcome, told

_ANNOTATION = "etcdops.dev/backed-up"  # has the operator reconcile the EtcdCluster


def notify_cluster(api: Kube, backup: Backup, plan: Plan, before: dict[str, Any]) -> None:
    """Record a backup that succeeded, or the next best one when the recorded one is deleted."""
    if plan.phase is Phase.SUCCEEDED and before.get("phase") != plan.phase:
        last: dict[str, Any] | None = told(backup.name, dict(plan.record))
    elif plan.finalized and outcome(before) is Phase.SUCCEEDED:
        cluster = api.get("EtcdCluster", backup.namespace, backup.cluster) or {}
        if cluster.get("status", {}).get("lastBackup", {}).get("name") != backup.name:
            return
        last = last_good(backup, api.list("EtcdBackup", backup.namespace, ""))
    else:
        return
    api.patch_status("EtcdCluster", backup.namespace, backup.cluster, {"lastBackup": last})
    note = {_ANNOTATION: last["time"] if last else None}
    api.annotate("EtcdCluster", backup.namespace, backup.cluster, note)
