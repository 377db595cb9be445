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

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils import kube, restore_planner
from ansible_collections.etcdops.etcd.plugins.module_utils.reporting import report, transition
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import read
from ansible_collections.etcdops.etcd.plugins.module_utils.restore_observe import observe


def main() -> None:
    module = AnsibleModule(
        argument_spec={"namespace": {"type": "str", "required": True}, "name": {"type": "str", "required": True}},
        supports_check_mode=True,
    )
    try:
        changed, cluster, plan = _reconcile(module.params, write=not module.check_mode)
    except kube.KubeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=changed,
        step=str(plan.step),
        phase=str(plan.phase),
        message=plan.message,
        cluster=cluster,
        create=list(plan.create),
        annotations=plan.annotations,
        forget_id=plan.forget_id,
        delete_jobs=list(plan.delete_jobs),
        release=plan.release,
        requeue=f"{plan.requeue}s",
    )


def _reconcile(params: dict[str, Any], *, write: bool) -> tuple[bool, str, restore_planner.Plan]:
    api = kube.connect()
    resource = api.get("EtcdRestore", params["namespace"], params["name"])
    if resource is None:
        gone = restore_planner.Plan(restore_planner.Phase.FAILED, "Gone", "The EtcdRestore is gone.", release=True)
        return False, "", gone
    restore = read(resource)
    before: dict[str, Any] = resource.get("status", {})
    seen = observe(api, restore, before)
    plan = restore_planner.plan(restore, seen, before)
    after = restore_planner.status(restore, plan, before, seen.now)
    failed = plan.phase in (restore_planner.Phase.FAILED, restore_planner.Phase.PUTTING_BACK)
    news = transition(before, str(plan.phase), plan.reason, plan.message, warning=failed)
    return report(api, resource, after, news, write=write), restore.cluster, plan


if __name__ == "__main__":
    main()
