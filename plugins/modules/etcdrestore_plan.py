#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""The operator's eyes, mind and mouth for an EtcdRestore."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdrestore_plan
short_description: Look at an EtcdRestore, decide on the next step and say so
description:
  - Reads the EtcdRestore, its source, its cluster and its Jobs; decides on exactly one step; writes the status and
    events where they changed.
  - The step itself is not taken; the role C(etcdrestore) does that.
author: The etcdops authors
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.plan
"""

EXAMPLES = r"""
- name: What would the operator do next?
  etcdops.etcd.etcdrestore_plan:
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
  description: The state that the restore is in.
  type: str
  returned: always
message:
  description: Why, for a person.
  type: str
  returned: always
cluster:
  description: The EtcdCluster that is restored.
  type: str
  returned: always
create:
  description: Objects to make in the step.
  type: list
  elements: dict
  returned: always
annotations:
  description: Annotations to set on the EtcdCluster in the step.
  type: dict
  returned: always
forget_id:
  description: Whether the EtcdCluster gets another cluster ID.
  type: bool
  returned: always
delete_jobs:
  description: Jobs to delete in the step.
  type: list
  elements: str
  returned: always
release:
  description: Whether nothing is left to do for a restore that is being deleted.
  type: bool
  returned: always
requeue:
  description: When to look again, as a Go duration.
  type: str
  returned: always
"""

from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.restore import Restore, read
from ansible_collections.etcdops.etcd.plugins.module_utils.reconcile import Kind, planned, reconcile, run
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import planner as restore_planner
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.observe import observe
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.plan import Phase, Plan, status


def main() -> None:
    run(_reconcile)


def _reconcile(namespace: str, name: str, write: bool) -> dict[str, Any]:
    gone = Plan(Phase.FAILED, "Gone", "The EtcdRestore is gone.", release=True)
    kind = Kind("EtcdRestore", read, observe, restore_planner.plan, status, gone, stranded=_stranded)
    changed, restore, plan = reconcile(kind, namespace, name, write)
    found = planned(changed, plan, "create", "annotations", "forget_id", "delete_jobs", "release")
    return {"cluster": restore.cluster if restore else "", **found}


def _stranded(_: Restore) -> Plan:
    """The volumes go, too."""
    return Plan(Phase.FAILED, "Gone", "The namespace is being deleted.", release=True)


if __name__ == "__main__":
    main()
