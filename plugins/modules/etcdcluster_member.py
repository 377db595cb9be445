#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""One change of an EtcdCluster's membership, fenced by what etcd answers now."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_member
short_description: Add, promote or remove a member of an EtcdCluster
description:
  - Asks the members again immediately before the change, and makes none that would cost the cluster its quorum.
    Leadership moves before a leader is removed.
  - A change that can't be made now is not a failure. RV(refused) says why, and the next reconcile decides again.
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
  description: Why the change was not made; empty when it was made or not needed.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import acting


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **acting.OPTIONS,
            "state": {"type": "str", "choices": ["learner", "voter", "absent"], "required": True},
            "pod": {"type": "str"},
            "id": {"type": "str"},
        },
        required_if=[("state", "learner", ("pod",)), ("state", "voter", ("id",)), ("state", "absent", ("id",))],
        supports_check_mode=True,
    )

    def change(live: acting.Live) -> bool:
        done = acting.change_member(
            live, module.params["state"], module.params["pod"], module.params["id"], dry_run=module.check_mode
        )
        if done.warning:
            module.warn(done.warning)
        return done.change is not None

    acting.run(module, change)


if __name__ == "__main__":
    main()
