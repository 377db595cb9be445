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

from ansible_collections.etcdops.etcd.plugins.module_utils import backup_planner, kube
from ansible_collections.etcdops.etcd.plugins.module_utils.backup import Backup, read
from ansible_collections.etcdops.etcd.plugins.module_utils.backup_observe import observe
from ansible_collections.etcdops.etcd.plugins.module_utils.one_object import planned, run
from ansible_collections.etcdops.etcd.plugins.module_utils.reporting import report, transition


def main() -> None:
    run(_reconcile)


def _reconcile(namespace: str, name: str, write: bool) -> dict[str, Any]:
    api = kube.connect()
    resource = api.get("EtcdBackup", namespace, name)
    if resource is None:
        gone = backup_planner.Plan(backup_planner.Phase.DELETING, "Gone", f"{name} is gone.", release=True)
        return _result(False, gone)
    backup = read(resource)
    before: dict[str, Any] = resource.get("status", {})
    seen = observe(api, backup, before)
    plan = backup_planner.plan(backup, seen, before)
    if backup.deleting and plan.create and api.takes_nothing_new(plan.create[0]):
        plan = backup_planner.left_behind(backup)
    if plan.phase is backup_planner.Phase.SUCCEEDED and before.get("phase") != plan.phase and write:
        _tell_cluster(api, backup, plan)
    after = backup_planner.status(backup, plan, before, seen.now)
    news = transition(before, str(plan.phase), plan.reason, plan.message, warning=plan.warning)
    return _result(report(api, resource, after, news, write=write), plan)


def _result(changed: bool, plan: backup_planner.Plan) -> dict[str, Any]:
    return planned(changed, plan, "create", "delete_jobs", "delete_claims", "release")


def _tell_cluster(api: kube.Kube, backup: Backup, plan: backup_planner.Plan) -> None:
    """The cluster's own status says when it was last backed up. The annotation has the operator look at it."""
    told = {"name": backup.name, "time": plan.result["completionTime"], "revision": plan.result["revision"]}
    api.patch_status("EtcdCluster", backup.namespace, backup.cluster, {"lastBackup": told})
    api.annotate("EtcdCluster", backup.namespace, backup.cluster, {"etcdops.dev/backed-up": told["time"]})


if __name__ == "__main__":
    main()
