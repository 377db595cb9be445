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
from ansible_collections.etcdops.etcd.plugins.module_utils import kube, reach, spec
from ansible_collections.etcdops.etcd.plugins.module_utils.change import Done, bring_about
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.membership import Wanted
from ansible_collections.etcdops.etcd.plugins.module_utils.survey import survey

_STATES = {"learner": "present", "voter": "promoted", "absent": "absent"}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "namespace": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": list(_STATES), "required": True},
            "pod": {"type": "str"},
            "id": {"type": "str"},
        },
        required_if=[("state", "learner", ("pod",)), ("state", "voter", ("id",)), ("state", "absent", ("id",))],
        supports_check_mode=True,
    )
    try:
        done = _change(module.params, dry_run=module.check_mode)
    except kube.KubeError as error:
        module.fail_json(msg=str(error))
    except EtcdError as error:
        module.exit_json(changed=False, refused=str(error))
    if done.warning:
        module.warn(done.warning)
    module.exit_json(changed=done.change is not None, refused="")


def _change(params: dict[str, Any], *, dry_run: bool) -> Done:
    api = kube.connect()
    cluster = reach.find(api, params["namespace"], params["name"])
    connection = reach.connect(api, cluster)
    try:
        found = survey(connection, list(connection.endpoints), discover=False)
        return bring_about(connection, found, _wanted(cluster, params), dry_run=dry_run)
    finally:
        connection.close()


def _wanted(cluster: spec.Cluster, params: dict[str, Any]) -> Wanted:
    if params["state"] == "learner":
        return Wanted("present", peer_urls=(cluster.peer_url(params["pod"]),))
    return Wanted(_STATES[params["state"]], id=int(params["id"], 16))


if __name__ == "__main__":
    main()
