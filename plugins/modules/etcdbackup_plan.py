#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""The operator's eyes, mind and mouth for an EtcdBackup."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdbackup_plan
short_description: Look at an EtcdBackup, decide on the next step and say so
description:
  - Reads the EtcdBackup, its cluster and its Jobs; decides on exactly one step; writes the status and events where they
    changed.
  - The step itself is not taken; the role C(etcdbackup) does that.
author: The etcdops authors
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.plan
"""

EXAMPLES = r"""
- name: What would the operator do next?
  etcdops.etcd.etcdbackup_plan:
    namespace: default
    name: example
  check_mode: true
  register: plan
"""

RETURN = r"""
step:
  description: The step to take, C(idle) for none.
  type: str
  returned: always
phase:
  description: The state that the backup is in.
  type: str
  returned: always
message:
  description: Why, for a person.
  type: str
  returned: always
create:
  description: Objects to make in the step.
  type: list
  elements: dict
  returned: always
delete_jobs:
  description: Jobs to delete in the step.
  type: list
  elements: str
  returned: always
delete_claims:
  description: Claims to delete in the step.
  type: list
  elements: str
  returned: always
release:
  description: Whether nothing is left to do for a backup that is being deleted.
  type: bool
  returned: always
requeue:
  description: When to look again, as a Go duration.
  type: str
  returned: always
"""

from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import Backup, read
from ansible_collections.etcdops.etcd.plugins.module_utils.backup import planner as backup_planner
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.observe import observe
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.planner import Phase, Plan
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import client as kube
from ansible_collections.etcdops.etcd.plugins.module_utils.reconcile import Kind, planned, reconcile, run


def main() -> None:
    run(_reconcile)


def _reconcile(namespace: str, name: str, write: bool) -> dict[str, Any]:
    gone = Plan(Phase.DELETING, "Gone", f"{name} is gone.", release=True)
    kind = Kind(
        "EtcdBackup",
        read,
        observe,
        backup_planner.plan,
        backup_planner.status,
        gone,
        stranded=backup_planner.left_behind,
        tell=_tell_cluster,
    )
    changed, _, plan = reconcile(kind, namespace, name, write)
    return planned(changed, plan, "create", "delete_jobs", "delete_claims", "release")


def _tell_cluster(api: kube.Kube, backup: Backup, plan: Plan, before: dict[str, Any]) -> None:
    """The cluster's own status says when it was last backed up. The annotation has the operator look at it."""
    if plan.phase is Phase.SUCCEEDED and before.get("phase") != plan.phase:
        last: dict[str, Any] | None = backup_planner.told(backup.name, plan.result)
    elif plan.release and backup_planner.outcome(before) is Phase.SUCCEEDED:
        cluster = api.get("EtcdCluster", backup.namespace, backup.cluster) or {}
        if cluster.get("status", {}).get("lastBackup", {}).get("name") != backup.name:
            return
        last = backup_planner.last_good(backup, api.list("EtcdBackup", backup.namespace, ""))
    else:
        return
    api.patch_status("EtcdCluster", backup.namespace, backup.cluster, {"lastBackup": last})
    note = {"etcdops.dev/backed-up": last["time"] if last else None}
    api.annotate("EtcdCluster", backup.namespace, backup.cluster, note)


if __name__ == "__main__":
    main()
