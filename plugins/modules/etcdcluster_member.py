#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""One change of an EtcdCluster's membership."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_member
short_description: Add, promote or remove a member of an EtcdCluster, or have it lead
description:
  - Asks the members of the cluster again before it changes anything, and makes no change that would cost the cluster
    its quorum. A member that leads hands leadership over before it is removed.
  - That a change can't be made now is no failure; RV(refused) says why, and the operator looks again.
author: The etcdops authors
options:
  state:
    description: Whether the member is added as a learner, promoted to a voter, leads, or is removed.
    type: str
    choices: [learner, voter, leader, absent]
    required: true
  pod:
    description: The pod of the member, to add it.
    type: str
  id:
    description: The member's ID in hexadecimal, unless it is to be added.
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
from ansible_collections.etcdops.etcd.plugins.module_utils import kube, spec
from ansible_collections.etcdops.etcd.plugins.module_utils.change import bring_about, hand_over
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import FAILED_PRECONDITION, EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.membership import Wanted
from ansible_collections.etcdops.etcd.plugins.module_utils.observe import client_tls, endpoints
from ansible_collections.etcdops.etcd.plugins.module_utils.survey import Connection, Survey, survey

_STATES = {"voter": "promoted", "absent": "absent"}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "namespace": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["learner", "voter", "leader", "absent"], "required": True},
            "pod": {"type": "str"},
            "id": {"type": "str"},
        },
        required_if=[
            ("state", "learner", ("pod",)),
            *(("state", state, ("id",)) for state in ("voter", "leader", "absent")),
        ],
        supports_check_mode=True,
    )
    try:
        changed, warning = _change(module.params, dry_run=module.check_mode)
    except kube.KubeError as error:
        module.fail_json(msg=str(error))
    except EtcdError as error:
        module.exit_json(changed=False, refused=str(error))
    if warning:
        module.warn(warning)
    module.exit_json(changed=changed, refused="")


def _change(params: dict[str, Any], *, dry_run: bool) -> tuple[bool, str]:
    """Whether anything was changed, and a warning."""
    api = kube.connect()
    resource = api.get("EtcdCluster", params["namespace"], params["name"])
    if resource is None:
        raise kube.KubeError(404, f"EtcdCluster {params['name']} is gone.")
    cluster = spec.read(resource)
    connection = _connection(api, cluster)
    try:
        found = survey(connection, list(connection.endpoints), discover=False)
        if params["state"] == "leader":
            return _lead(connection, found, int(params["id"], 16), dry_run=dry_run), ""
        done = bring_about(connection, found, _wanted(cluster, params), dry_run=dry_run)
        return done.change is not None, done.warning
    finally:
        connection.close()


def _lead(connection: Connection, found: Survey, identity: int, *, dry_run: bool) -> bool:
    """Have a voter lead that is well; tells whether it did not before."""
    heir = next((seen.member for seen in found.members if seen.member.id == identity and seen.healthy), None)
    if heir is None or heir.is_learner:
        raise EtcdError(FAILED_PRECONDITION, f"{identity:x} can't lead: it is no voter that is well")
    if identity == found.leader_id:
        return False
    if not dry_run:
        hand_over(connection, found, heir)
    return True


def _wanted(cluster: spec.Cluster, params: dict[str, Any]) -> Wanted:
    if params["state"] == "learner":
        return Wanted("present", peer_urls=(cluster.peer_url(params["pod"]),))
    return Wanted(_STATES[params["state"]], id=int(params["id"], 16))


def _connection(api: kube.Kube, cluster: spec.Cluster) -> Connection:
    pods = api.list("Pod", cluster.namespace, cluster.selector)
    tls = None
    if cluster.tls.enabled:
        name = cluster.secret("operator")
        secret = api.get("Secret", cluster.namespace, name)
        if secret is None:
            raise kube.KubeError(404, f"Secret {name} is gone.")
        tls = client_tls(secret)
    found = endpoints(cluster, pods).values()
    return Connection(tls, timeout=3.0, endpoints={endpoint.url: endpoint for endpoint in found})


if __name__ == "__main__":
    main()
