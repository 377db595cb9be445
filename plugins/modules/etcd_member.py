#!/usr/bin/python
"""Ansible module: who belongs to an etcd cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_member
short_description: Add, promote, change and remove members of an etcd cluster
version_added: "0.1.0"
description:
  - Adds, promotes, updates or removes one member, and changes nothing when it is in the desired state already.
  - It does not start or stop etcd. Add a member before its etcd is started, with C(--initial-cluster-state=existing);
    remove one before its etcd is stopped for good.
  - It refuses a change that would cost the cluster its quorum, judged by which members answer on their client URLs.
  - A request that one voter refuses because of its own state is sent to the others.
options:
  state:
    description:
      - V(present) adds the member, or gives it O(peer_urls) if it has others.
      - V(promoted) makes a learner a voter. It fails while the learner is not in sync with the leader; retry it later.
      - V(absent) removes the member, after moving leadership away from it if it leads.
    type: str
    choices: [present, promoted, absent]
    default: present
  name:
    description:
      - The member's name. A member gets it when it starts for the first time, so one that was only just added is
        found by O(peer_urls).
    type: str
  id:
    description:
      - The member's ID in hexadecimal, as C(etcdctl member list) and M(etcdops.etcd.etcd_cluster_info) write it.
      - Quote it, because YAML takes some IDs for numbers.
    type: str
  peer_urls:
    description:
      - The URLs that the other members use. Required to add a member.
    type: list
    elements: str
  learner:
    description:
      - Whether a member that is added starts as a learner, which has no vote until it is promoted.
      - Has no effect on a member that exists already.
    type: bool
    default: true
  force:
    description:
      - Do not refuse a change that would lose quorum. etcd's own checks remain (C(--strict-reconfig-check)).
      - Useful where a member is healthy but can't be reached from the machine where the module runs.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Reports what it would do or refuse. Only etcd knows whether a learner is in sync.
  diff_mode:
    support: full
    description: Shows the members before and after.
  platform:
    support: full
    platforms: posix
    description: Where it runs.
extends_documentation_fragment:
  - etcdops.etcd.etcd
seealso:
  - module: etcdops.etcd.etcd_cluster_info
author:
  - The etcdops authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Add a member as a learner
  etcdops.etcd.etcd_member:
    endpoints: ["http://10.0.0.1:2379", "http://10.0.0.2:2379"]
    name: m3
    peer_urls: ["http://10.0.0.3:2380"]
  register: added

# Start etcd on 10.0.0.3 now: --name=m3 --initial-cluster-state=existing --initial-cluster=…

- name: Make it a voter as soon as it is in sync
  etcdops.etcd.etcd_member:
    endpoints: ["http://10.0.0.1:2379", "http://10.0.0.2:2379"]
    id: "{{ added.member.id }}"
    state: promoted
  register: promoted
  until: promoted is succeeded
  retries: 30
  delay: 2

- name: Remove a member
  etcdops.etcd.etcd_member:
    endpoints: ["https://10.0.0.1:2379", "https://10.0.0.2:2379"]
    ca_cert: /etc/etcd/pki/ca.crt
    client_cert: /etc/etcd/pki/client.crt
    client_key: /etc/etcd/pki/client.key
    name: m3
    state: absent
"""

RETURN = r"""
action:
  description: What was done, or would be in check mode; V(none) when no change was needed.
  returned: success
  type: str
  sample: add
member:
  description: The member, after the change; before it if it was removed. V(null) if there is none.
  returned: success
  type: dict
  contains: &member
    id:
      description: Its ID in hexadecimal; V(null) in check mode for one that would be added.
      type: str
      sample: 2e126f9437da3800
    name:
      description: Its name. Empty until it has started for the first time.
      type: str
      sample: m3
    peer_urls:
      description: The URLs that the other members use.
      type: list
      elements: str
      sample: ["http://10.0.0.3:2380"]
    client_urls:
      description: The URLs that it advertises to clients.
      type: list
      elements: str
      sample: ["http://10.0.0.3:2379"]
    learner:
      description: Whether it is a learner.
      type: bool
      sample: true
members:
  description: All members, after the change.
  returned: success
  type: list
  elements: dict
  contains: *member
code:
  description: The gRPC code of the refusal, for example 9 (failed precondition) or 14 (unavailable).
  returned: when etcd or the module refused
  type: int
  sample: 9
"""

from collections.abc import Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.connection import Connection
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import Change, Wanted, find, member_id
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.module import Result, make_module, member_result, run
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.reconfigure import reconfigure
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import look


def main() -> None:
    module = make_module(
        {
            "state": {"type": "str", "choices": ["present", "promoted", "absent"], "default": "present"},
            "name": {"type": "str"},
            "id": {"type": "str"},
            "peer_urls": {"type": "list", "elements": "str"},
            "learner": {"type": "bool", "default": True},
            "force": {"type": "bool", "default": False},
        },
        required_one_of=[("name", "id", "peer_urls")],
    )
    run(module, lambda connection: _work(module, connection))


def _work(module: AnsibleModule, connection: Connection) -> Result:
    wanted = _wanted(module.params)
    view = look(connection, module.params["endpoints"]).require_members()
    done = reconfigure(connection, view, wanted, dry_run=module.check_mode)
    if done.warning:
        module.warn(done.warning)
    member = _meant(done.change, wanted, done.after)
    return {
        "changed": done.change is not None,
        "action": done.change.action if done.change else "none",
        "member": member_result(member) if member else None,
        "members": _listed(done.after),
        "diff": {"before": {"members": _listed(done.before)}, "after": {"members": _listed(done.after)}},
    }


def _wanted(params: dict[str, Any]) -> Wanted:
    peer_urls = tuple(params["peer_urls"] or ())
    identity = member_id(params["id"])
    return Wanted(params["state"], identity, params["name"], peer_urls, params["learner"], params["force"])


def _meant(change: Change | None, wanted: Wanted, after: Sequence[Member]) -> Member | None:
    if change is None:
        return find(wanted, after)
    if change.action == "remove":
        return change.member
    if change.action == "add":
        return next((member for member in after if set(member.peer_urls) & set(change.member.peer_urls)), None)
    return next((member for member in after if member.id == change.member.id), None)


def _listed(members: Sequence[Member]) -> list[Result]:
    return sorted((member_result(member) for member in members), key=lambda one: (one["name"], one["id"] or ""))


if __name__ == "__main__":
    main()
