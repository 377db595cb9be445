#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Who leads an etcd cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_leader
short_description: Move the leadership of an etcd cluster
description:
  - Has a certain member lead, or has it follow, so that it can be restarted or removed without an election.
  - Leadership goes to a healthy voter only, and takes a moment in which no write is lost.
author: The etcdops authors
options:
  name:
    description: The name of the member that is meant.
    type: str
  id:
    description: Its ID in hexadecimal, as C(etcdctl member list) writes it.
    type: str
  state:
    description:
      - V(leader) has the member lead.
      - V(follower) has any other lead, the one that knows most, if the member leads now.
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
- name: Have another member lead before m1 is restarted
  etcdops.etcd.etcd_leader:
    endpoints: ["http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"]
    name: m1
    state: follower
"""

RETURN = r"""
leader:
  description: The member that leads then.
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
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import (
    FAILED_PRECONDITION,
    UNAVAILABLE,
    EtcdError,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import Wanted, display_name, find, member_id
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.module import Result, make_module, run
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.reconfigure import best_heir, hand_over
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import Connection, Seen, Survey, survey


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
    found = survey(connection, module.params["endpoints"])
    if not found.quorum or not found.leader_id:
        raise EtcdError(UNAVAILABLE, "the cluster has no leader; bring its voters back first")
    meant = _meant(found, module.params["name"], module.params["id"])
    leads = next(seen for seen in found.members if seen.member.id == found.leader_id)
    heir = _heir(found, meant, module.params["state"])
    if heir is not None and not module.check_mode:
        hand_over(connection, found, heir.member)
    leader = heir or leads
    return {
        "changed": heir is not None,
        "leader": {"id": f"{leader.member.id:x}", "name": leader.member.name},
        "diff": {"before": {"leader": leads.member.name}, "after": {"leader": leader.member.name}},
    }


def _meant(found: Survey, name: str | None, text: str | None) -> Seen:
    member = find(Wanted("present", member_id(text), name), [seen.member for seen in found.members])
    if member is None:
        known = ", ".join(display_name(seen.member) for seen in found.members)
        raise EtcdError(FAILED_PRECONDITION, f"there is no member {name or text}; there are {known}")
    return next(seen for seen in found.members if seen.member == member)


def _heir(found: Survey, meant: Seen, state: str) -> Seen | None:
    """Who is to lead; None when all is as wanted."""
    leads = meant.member.id == found.leader_id
    if (state == "leader") == leads:
        return None
    heir = meant if state == "leader" else best_heir(found)
    if heir is None:
        raise EtcdError(FAILED_PRECONDITION, "there is no other healthy voter to lead")
    if heir.member.is_learner or not heir.healthy:
        why = "it is a learner" if heir.member.is_learner else heir.error
        raise EtcdError(FAILED_PRECONDITION, f"{display_name(heir.member)} can't lead: {why}")
    return heir


if __name__ == "__main__":
    main()
