#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Restart one member of an EtcdCluster, if that is safe now."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_restart
short_description: Restart a member of an EtcdCluster
description:
  - Asks the members again, and restarts none while another voter is unhealthy or not in sync. Leadership moves before a
    leader restarts.
  - Deletes the pod gracefully, and only the pod with this uid; the StatefulSet recreates it.
  - A restart that is not safe now is not a failure. RV(refused) says why, and the next reconcile decides again.
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
  transferee:
    description: The ID of the voter to move leadership to if this one leads, in hexadecimal; empty for the best one.
    type: str
    default: ""
  objects:
    description: Objects to apply immediately before, so that the new pod uses them.
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
  description: Why it was not restarted; empty when it was, or when its pod is gone.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import acting, restart


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **acting.OPTIONS,
            "pod": {"type": "str", "required": True},
            "uid": {"type": "str", "required": True},
            "transferee": {"type": "str", "default": ""},
            "objects": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    params = module.params
    wanted = restart.Restart(params["pod"], params["uid"], params["transferee"], tuple(params["objects"]))
    acting.run(module, lambda live: restart.restart_member(live, wanted, dry_run=module.check_mode))


if __name__ == "__main__":
    main()
