#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Who leads an etcd cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_leader
short_description: Move the leadership of an etcd cluster
description:
  - Makes a member the leader, or a follower, so that it can be restarted or removed without an election.
  - Leadership only moves to a healthy voter in sync. No acknowledged write is lost.
author: The etcdops authors
options:
  name:
    description: The name of the member.
    type: str
  id:
    description: Its ID in hexadecimal, as C(etcdctl member list) writes it.
    type: str
  state:
    description:
      - V(leader) moves leadership to the member.
      - V(follower) moves leadership to the most advanced other voter, if the member leads now.
    type: str
    choices: [leader, follower]
    default: leader
attributes:
  check_mode:
    description: Can run in check_mode and tell what it would do without changing anything.
    support: full
  diff_mode:
    description: Returns details on what has changed in diff mode.
    support: full
extends_documentation_fragment:
  - etcdops.etcd.etcd
"""

EXAMPLES = r"""
- name: Move leadership away from m1 before it is restarted
  etcdops.etcd.etcd_leader:
    endpoints: ["http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"]
    name: m1
    state: follower
"""

RETURN = r"""
leader:
  description: The leader afterwards.
  returned: success
  type: dict
  contains:
    id:
      description: Its ID in hexadecimal.
      type: str
      sample: 2e126f9437da3800
    name:
      description: Its name.
      type: str
      sample: m2
code:
  description: The gRPC code of the refusal, for example 9 (failed precondition) or 14 (unavailable).
  returned: when etcd or the module refused
  type: int
  sample: 9
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.connection import Connection
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import FAILED_PRECONDITION, EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.leadership import move_leader, successor
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import Wanted, display_name, find, member_id
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.module import Result, make_module, run
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.restart_order import voters
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import ClusterView, MemberView, look


def main() -> None:
    module = make_module(
        {
            "name": {"type": "str"},
            "id": {"type": "str"},
            "state": {"type": "str", "choices": ["leader", "follower"], "default": "leader"},
        },
        required_one_of=[("name", "id")],
    )
    run(module, lambda connection: _work(module, connection))


def _work(module: AnsibleModule, connection: Connection) -> Result:
    view = look(connection, module.params["endpoints"]).require_members().require_leader()
    chosen = _chosen(view, module.params["name"], module.params["id"])
    current = next(one for one in view.members if one.member.id == view.leader_id)
    transferee = _transferee(view, chosen, module.params["state"])
    if transferee is not None and not module.check_mode:
        move_leader(connection, view, transferee.member.id)
    leader = transferee or current
    return {
        "changed": transferee is not None,
        "leader": {"id": f"{leader.member.id:x}", "name": leader.member.name},
        "diff": {"before": {"leader": current.member.name}, "after": {"leader": leader.member.name}},
    }


def _chosen(view: ClusterView, name: str | None, text: str | None) -> MemberView:
    member = find(Wanted("present", member_id(text), name), [one.member for one in view.members])
    if member is None:
        known = ", ".join(display_name(one.member) for one in view.members)
        raise EtcdError(FAILED_PRECONDITION, f"there is no member {name or text}; there are {known}")
    return next(one for one in view.members if one.member == member)


def _transferee(view: ClusterView, chosen: MemberView, state: str) -> MemberView | None:
    """Who is to lead; None when it does already."""
    leads = chosen.member.id == view.leader_id
    if (state == "leader") == leads:
        return None
    best = successor(voters(view), view.leader_id)
    found = chosen if state == "leader" else (view.find(best.id) if best else None)
    if found is None:
        raise EtcdError(FAILED_PRECONDITION, "there is no other healthy voter to lead")
    if found.member.is_learner or not found.healthy:
        why = "it is a learner" if found.member.is_learner else found.error
        raise EtcdError(FAILED_PRECONDITION, f"{display_name(found.member)} can't lead: {why}")
    return found


if __name__ == "__main__":
    main()
