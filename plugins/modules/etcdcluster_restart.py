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

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils import kube, reach, roll
from ansible_collections.etcdops.etcd.plugins.module_utils.change import hand_over
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import FAILED_PRECONDITION, EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.next_step import voters
from ansible_collections.etcdops.etcd.plugins.module_utils.survey import survey


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "namespace": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "pod": {"type": "str", "required": True},
            "uid": {"type": "str", "required": True},
            "lead": {"type": "str", "default": ""},
            "objects": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        changed = _restart(module.params, dry_run=module.check_mode)
    except kube.KubeError as error:
        module.fail_json(msg=str(error))
    except EtcdError as error:
        module.exit_json(changed=False, refused=str(error))
    module.exit_json(changed=changed, refused="")


def _restart(params: dict[str, Any], *, dry_run: bool) -> bool:
    api = kube.connect()
    cluster = reach.find(api, params["namespace"], params["name"])
    connection = reach.connect(api, cluster)
    try:
        found = survey(connection, list(connection.endpoints), discover=False)
        pods = api.list("Pod", cluster.namespace, cluster.selector)
        going = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]}
        heir = roll.gate(voters(found, going=going - {params["pod"]}), params["pod"], int(params["lead"] or "0", 16))
        if dry_run:
            return True
        if heir:
            member = next(seen.member for seen in found.members if seen.member.id == heir.id)
            hand_over(connection, found, member)
    except ValueError as error:
        raise EtcdError(FAILED_PRECONDITION, str(error)) from error
    finally:
        connection.close()
    for manifest in params["objects"]:
        api.apply(manifest)
    return api.delete("Pod", params["namespace"], params["pod"], params["uid"])


if __name__ == "__main__":
    main()
