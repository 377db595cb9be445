#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""The operator's eyes, mind and mouth: observe, plan, report."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_plan
short_description: Look at an EtcdCluster, decide on the next step and say so
description:
  - Reads the EtcdCluster, the objects that belong to it and the answers of every member; decides on exactly one step;
    writes the status and events where they changed.
  - The step itself is not taken; the role C(etcdcluster) does that.
author: The etcdops authors
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.etcdcluster
"""

EXAMPLES = r"""
- name: What would the operator do next?
  etcdops.etcd.etcdcluster_plan:
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
  description: The state that the cluster is in.
  type: str
  returned: always
message:
  description: Why, for a person.
  type: str
  returned: always
remove:
  description: The ID of the member to remove in the step, in hexadecimal; empty for none.
  type: str
  returned: always
add:
  description: The pod to add as a learner in the step; empty for none.
  type: str
  returned: always
promote:
  description: The ID of the learner to promote in the step; empty for none.
  type: str
  returned: always
apply:
  description: Objects to apply in the step.
  type: list
  elements: dict
  returned: always
delete_claims:
  description: Claims to delete in the step.
  type: list
  elements: str
  returned: always
delete_pods:
  description: Pods to delete in the step.
  type: list
  elements: str
  returned: always
delete_backups:
  description: EtcdBackups to delete in the step.
  type: list
  elements: str
  returned: always
delete_sets:
  description: StatefulSets to delete in the step, without their pods.
  type: list
  elements: str
  returned: always
restart:
  description: The pod to restart in the step; empty for none.
  type: str
  returned: always
restart_uid:
  description: The uid that this pod must have.
  type: str
  returned: always
lead:
  description: The ID of the voter that is to lead before that, in hexadecimal; empty when it does not matter.
  type: str
  returned: always
downgrade:
  description: The version that etcd is to get ready for in the step C(downgrade); empty to call it off.
  type: str
  returned: always
certificates:
  description: Whether certificates are to be issued in the step.
  type: bool
  returned: always
requeue:
  description: When to look again, as a Go duration.
  type: str
  returned: always
"""

from dataclasses import replace
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.api import cluster as spec
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import planner, status
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observe import observe
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import SETTLED, Phase, Plan, spread
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import client as kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.reporting import report


def main() -> None:
    module = AnsibleModule(
        argument_spec={"namespace": {"type": "str", "required": True}, "name": {"type": "str", "required": True}},
        supports_check_mode=True,
    )
    try:
        changed, plan = _reconcile(module.params["namespace"], module.params["name"], write=not module.check_mode)
    except kube.KubeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=changed,
        step=str(plan.step),
        phase=str(plan.phase),
        message=plan.message,
        remove=plan.remove,
        add=plan.add,
        promote=plan.promote,
        apply=list(plan.apply),
        delete_claims=list(plan.delete_claims),
        delete_pods=list(plan.delete_pods),
        delete_backups=list(plan.delete_backups),
        delete_sets=list(plan.delete_sets),
        restart=plan.restart,
        restart_uid=plan.restart_uid,
        lead=plan.lead,
        downgrade=plan.downgrade,
        certificates=plan.certificates,
        requeue=f"{plan.requeue}s",
    )


def _reconcile(namespace: str, name: str, *, write: bool) -> tuple[bool, Plan]:
    api = kube.connect()
    resource = api.get("EtcdCluster", namespace, name)
    if resource is None:  # deleted while we were on our way
        gone = Plan(Phase.DELETING, "Gone", f"EtcdCluster {name} is gone.", requeue=SETTLED)
        return False, gone
    cluster = spec.read(resource)
    before: dict[str, Any] = resource.get("status", {})
    seen = observe(api, cluster, before)
    plan = planner.plan(cluster, seen)
    if why := _refusal(api, plan):
        plan = planner.rejected(cluster, plan, why)
    after = status.status(cluster, seen, plan, before)
    news = status.events(cluster, plan, before)
    changed = report(api, resource, after, news, write=write)
    return changed, replace(plan, requeue=spread(plan.requeue, cluster.uid))


def _refusal(api: kube.Kube, plan: Plan) -> str | None:
    """Why Kubernetes would not take what the plan applies: a schema can't know all that is wrong with a pod."""
    for manifest in plan.apply:
        try:
            if manifest["kind"] in ("StatefulSet", "PersistentVolumeClaim"):
                api.apply(manifest, dry_run=True)
        except kube.KubeError as error:
            if error.status in (400, 403, 422):
                return str(error)
            raise
    return None


if __name__ == "__main__":
    main()
