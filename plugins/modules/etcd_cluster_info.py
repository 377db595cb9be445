#!/usr/bin/python
"""Ansible module: how an etcd cluster is."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_cluster_info
short_description: Report the state of an etcd cluster
version_added: "0.1.0"
description:
  - Asks all members concurrently and returns the member list, the leader, and each member's health, version, sizes and
    alarms.
  - A member that does not answer is part of the result. The module fails when no voter answers, unless
    O(required=false), and when the endpoints are not of one cluster.
options:
  discover:
    description:
      - Also ask the members that O(endpoints) leaves out, at the client URLs that they advertise.
      - If all of O(endpoints) are C(https), only C(https) URLs are followed.
    type: bool
    default: true
  required:
    description:
      - Whether to fail when no voter answers. If not, RV(available) is V(false) then and RV(members) is empty.
    type: bool
    default: true
attributes:
  check_mode:
    support: full
    description: It only reads.
  diff_mode:
    support: N/A
    description: It changes nothing.
  platform:
    support: full
    platforms: posix
    description: Where it runs.
extends_documentation_fragment:
  - etcdops.etcd.etcd
seealso:
  - module: etcdops.etcd.etcd_member
author:
  - The etcdops authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Report the state of the etcd on this machine
  etcdops.etcd.etcd_cluster_info:
  register: etcd

- name: Fail if a member is not healthy
  ansible.builtin.assert:
    that: etcd.members | rejectattr('healthy') | length == 0
    fail_msg: "{{ etcd.members | rejectattr('healthy') | map(attribute='error') | join(', ') }}"

- name: Report the state of a cluster with TLS, as a user
  etcdops.etcd.etcd_cluster_info:
    endpoints:
      - https://10.0.0.1:2379
      - https://10.0.0.2:2379
      - https://10.0.0.3:2379
    ca_cert: /etc/etcd/pki/ca.crt
    client_cert: /etc/etcd/pki/client.crt
    client_key: /etc/etcd/pki/client.key
    username: root
    password: "{{ etcd_root_password }}"
"""

RETURN = r"""
available:
  description: Whether a voter answered. All else but RV(endpoints) is empty if not.
  returned: always
  type: bool
  sample: true
quorum:
  description:
    - Whether the cluster has quorum.
    - If not, RV(members) is the view of the most advanced member.
  returned: always
  type: bool
  sample: true
cluster_id:
  description: The cluster's ID in hexadecimal.
  returned: always
  type: str
  sample: a3524d4a4a14a3c0
leader:
  description: The leader's name, or its ID if it has no name; empty when there is no leader.
  returned: always
  type: str
  sample: m0
members:
  description: The members, by name.
  returned: always
  type: list
  elements: dict
  contains:
    id:
      description: The member's ID in hexadecimal, as C(etcdctl) writes it.
      type: str
      sample: 2e126f9437da3800
    name:
      description: Its name. Empty until it has started for the first time.
      type: str
      sample: m0
    role:
      description: V(leader), V(voter) or V(learner).
      type: str
      sample: leader
    learner:
      description: Whether it is a learner.
      type: bool
      sample: false
    healthy:
      description:
        - Whether it served a linearizable read; of a learner, whether it follows a leader.
        - V(null) if it was not asked.
      type: bool
      sample: true
    error:
      description: Why it is not healthy.
      type: str
      sample: ""
    peer_urls:
      description: The URLs that the other members use.
      type: list
      elements: str
      sample: ["http://10.0.0.1:2380"]
    client_urls:
      description: The URLs that it advertises to clients.
      type: list
      elements: str
      sample: ["http://10.0.0.1:2379"]
    version:
      description: The version it runs. V(null), as all that follows, if it did not answer.
      type: str
      sample: 3.6.16
    storage_version:
      description: The version of its storage; empty in 3.5.
      type: str
      sample: 3.6.0
    db_size:
      description: Size of its database in bytes.
      type: int
      sample: 36864
    db_size_in_use:
      description: What a defragmentation would leave of RV(members[].db_size).
      type: int
      sample: 24576
    db_size_quota:
      description: The database size in bytes at which it refuses writes; V(0) for etcd 3.5, which does not report it.
      type: int
      sample: 2147483648
    revision:
      description: The revision of the key space that it has.
      type: int
      sample: 42
    raft_term:
      description: Its raft term.
      type: int
      sample: 2
    raft_applied_index:
      description: The last raft entry that it has applied.
      type: int
      sample: 57
    alarms:
      description: Its alarms, V(NOSPACE) or V(CORRUPT).
      type: list
      elements: str
      sample: []
alarms:
  description: All alarms.
  returned: always
  type: list
  elements: dict
  contains:
    member:
      description: The ID of the member; V(0) when etcd does not know whose data is corrupt.
      type: str
      sample: 2e126f9437da3800
    alarm:
      description: V(NOSPACE) or V(CORRUPT).
      type: str
      sample: NOSPACE
endpoints:
  description: The result for each URL that was asked.
  returned: always
  type: list
  elements: dict
  contains:
    url:
      description: The URL.
      type: str
      sample: http://10.0.0.1:2379
    member:
      description: The ID of the member that answered, or V(null).
      type: str
      sample: 2e126f9437da3800
    error:
      description: Why there is no answer, or what is wrong with the member.
      type: str
      sample: ""
"""

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.connection import Connection
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.module import Result, make_module, member_result, run
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import Answer, ClusterView, MemberView, look

_FROM_STATUS = (
    "version",
    "storage_version",
    "db_size",
    "db_size_in_use",
    "db_size_quota",
    "revision",
    "raft_term",
    "raft_applied_index",
)


def main() -> None:
    module = make_module(
        {
            "discover": {"type": "bool", "default": True},
            "required": {"type": "bool", "default": True},
        }
    )
    params = module.params

    def work(connection: Connection) -> Result:
        view = look(connection, params["endpoints"], discover=params["discover"])
        return _result(view.require_members() if params["required"] else view)

    run(module, work)


def _result(view: ClusterView) -> Result:
    members = [_member(one, view.leader_id) for one in view.members]
    return {
        "changed": False,
        "available": bool(members),
        "quorum": view.quorum,
        "cluster_id": f"{view.cluster_id:x}" if members else "",
        "leader": next((member["name"] or member["id"] for member in members if member["role"] == "leader"), ""),
        "members": sorted(members, key=lambda member: (member["name"], member["id"])),
        "alarms": [{"member": f"{alarm.member_id:x}", "alarm": alarm.alarm} for alarm in view.alarms],
        "endpoints": [_endpoint(url, answer) for url, answer in view.answers.items()],
    }


def _member(one: MemberView, leader_id: int) -> Result:
    role = "learner" if one.member.is_learner else "leader" if one.member.id == leader_id else "voter"
    return {
        **member_result(one.member),
        "role": role,
        "healthy": one.healthy,
        "error": one.error,
        "alarms": list(one.alarms),
        **{name: getattr(one.status, name, None) for name in _FROM_STATUS},
    }


def _endpoint(url: str, answer: Answer | EtcdError) -> Result:
    if isinstance(answer, EtcdError):
        return {"url": url, "member": None, "error": answer.message}
    return {"url": url, "member": f"{answer.status.member_id:x}", "error": answer.error}


if __name__ == "__main__":
    main()
