#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""One member of an EtcdCluster restarts, if that is safe in this very moment."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_restart
short_description: Restart a member of an EtcdCluster
description:
  - Asks the members again, and restarts none while another voter does not serve or is not in sync. A member that leads
    hands leadership over before.
  - Its pod is deleted, not by force, and only the very pod that is meant; the StatefulSet makes it anew.
  - That it can't be done now is no failure; RV(refused) says why, and the operator looks again.
author: The etcdops authors
options:
  pod:
    description: The member's pod.
    type: str
    required: true
  uid:
    description: The uid of that pod.
    type: str
    required: true
  lead:
    description: The ID of the voter that leads then if this one did, in hexadecimal; empty for the one that knows most.
    type: str
    default: ""
  objects:
    description: Objects to apply right before, so that the new pod finds them.
    type: list
    elements: dict
    default: []
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.etcdcluster
"""

EXAMPLES = r"""
- name: Restart a member
  etcdops.etcd.etcdcluster_restart:
    namespace: default
    name: example
    pod: example-2
    uid: 0b9d6f7e-7d0c-4f0e-9a6e-2f2f6f0c1c11
"""

RETURN = r"""
refused:
  description: Why it was not restarted; empty when it was, or its pod is gone.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import acting as reach
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import rollout
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import FAILED_PRECONDITION, EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.reconfigure import hand_over
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.upgrade import voters


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **reach.OPTIONS,
            "pod": {"type": "str", "required": True},
            "uid": {"type": "str", "required": True},
            "lead": {"type": "str", "default": ""},
            "objects": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )

    def restart(one_of: reach.Reached) -> bool:
        heir = _heir(one_of, module.params["pod"], int(module.params["lead"] or "0", 16))
        if module.check_mode:
            return True
        if heir:
            member = next(seen.member for seen in one_of.found.members if seen.member.id == heir.id)
            hand_over(one_of.connection, one_of.found, member)
        for manifest in module.params["objects"]:
            one_of.api.apply(manifest)
        return one_of.api.delete("Pod", one_of.cluster.namespace, module.params["pod"], module.params["uid"])

    reach.end(module, restart)


def _heir(one_of: reach.Reached, pod: str, lead: int) -> rollout.Voter | None:
    """Who must lead before this pod goes; EtcdError when it must not go now."""
    try:
        return rollout.gate(voters(one_of.found), pod, lead)
    except ValueError as error:
        raise EtcdError(FAILED_PRECONDITION, str(error)) from error


if __name__ == "__main__":
    main()
