#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""One change of an EtcdCluster's membership."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_member
short_description: Add, promote or remove a member of an EtcdCluster
description:
  - Asks the members of the cluster again before it changes anything, and makes no change that would cost the cluster
    its quorum. A member that leads hands leadership over before it is removed.
  - That a change can't be made now is no failure; RV(refused) says why, and the operator looks again.
author: The etcdops authors
options:
  state:
    description: Whether the member is added as a learner, promoted to a voter, or removed.
    type: str
    choices: [learner, voter, absent]
    required: true
  pod:
    description: The pod of the member, to add it.
    type: str
  id:
    description: The member's ID in hexadecimal, to promote or remove it.
    type: str
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.etcdcluster
"""

EXAMPLES = r"""
- name: Add a learner
  etcdops.etcd.etcdcluster_member:
    namespace: default
    name: example
    state: learner
    pod: example-3
"""

RETURN = r"""
refused:
  description: Why the change was not made; empty when it was, or needed not be.
  type: str
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.api import cluster as spec
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import acting as reach
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import Wanted
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.reconfigure import bring_about

_STATES = {"learner": "present", "voter": "promoted", "absent": "absent"}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **reach.OPTIONS,
            "state": {"type": "str", "choices": list(_STATES), "required": True},
            "pod": {"type": "str"},
            "id": {"type": "str"},
        },
        required_if=[("state", "learner", ("pod",)), ("state", "voter", ("id",)), ("state", "absent", ("id",))],
        supports_check_mode=True,
    )

    def change(of: reach.Reached) -> bool:
        wanted = _wanted(of.cluster, module.params)
        done = bring_about(of.connection, of.found, wanted, dry_run=module.check_mode)
        if done.warning:
            module.warn(done.warning)
        return done.change is not None

    reach.end(module, change)


def _wanted(cluster: spec.Cluster, params: dict[str, Any]) -> Wanted:
    if params["state"] == "learner":
        return Wanted("present", peer_urls=(cluster.peer_url(params["pod"]),))
    return Wanted(_STATES[params["state"]], id=int(params["id"], 16))


if __name__ == "__main__":
    main()
