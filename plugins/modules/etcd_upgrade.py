#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""The way of an etcd cluster to another version, one step at a time."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_upgrade
short_description: Plan and check the next step of an upgrade of etcd
description:
  - Reports whether a cluster can move to another etcd version from what its members run, which member restarts next,
    and whether that is safe now. This module replaces no program and restarts nothing.
  - Allowed are later patches and the next minor version, as etcd's maintainers support them, and the previous version
    while one member has not moved.
  - The playbook C(etcdops.etcd.etcd_upgrade) is an example for etcd on plain machines.
author: The etcdops authors
options:
  version:
    description: The target version, such as V(3.6.16).
    type: str
    required: true
  state:
    description:
      - V(planned) only reports.
      - V(prepared) prepares etcd before the first member restarts, and waits until it is done. For an older minor
        version, it enables a downgrade. For 3.7, members drop log entries that 3.5 wrote, because 3.7 can't read them;
        for that it enables a downgrade and cancels it again.
      - V(ready) prepares O(member) to be stopped, which only moves leadership. It is RV(ready) only if all other voters
        are healthy and in sync.
    type: str
    choices: [planned, prepared, ready]
    default: planned
  member:
    description: The member that is about to be stopped, for O(state=ready); by default the next one.
    type: str
  allow_downgrade:
    description: Whether the cluster may go down by one minor version when every member has left that version.
    type: bool
    default: false
attributes:
  check_mode:
    description: Can run in check_mode and tell what it would do without changing anything.
    support: full
  diff_mode:
    description: Returns details on what has changed in diff mode.
    support: none
extends_documentation_fragment:
  - etcdops.etcd.etcd
"""

EXAMPLES = r"""
- name: Report whether it can be upgraded, and which member is next
  etcdops.etcd.etcd_upgrade:
    endpoints: ["http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"]
    version: 3.6.16
  register: upgrade

- name: Prepare a member to be stopped
  etcdops.etcd.etcd_upgrade:
    endpoints: ["http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"]
    version: 3.6.16
    state: ready
    member: m1
  register: turn
  until: turn.ready | default(false)
  retries: 60
  delay: 1
"""

RETURN = r"""
ready:
  description: Whether the next member, or O(member), may be stopped now.
  returned: success
  type: bool
waits:
  description: Why not.
  returned: success
  type: str
  sample: "m1 is not restarted: m2 is not healthy"
done:
  description: Whether every voter runs the version and the cluster version followed.
  returned: success
  type: bool
order:
  description: The members that have yet to restart, in this order, the leader last.
  returned: success
  type: list
  elements: str
  sample: [m2, m1, m0]
cluster_version:
  description: The cluster version that the members agreed on.
  returned: success
  type: str
  sample: 3.5.0
members:
  description: The members.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      sample: m1
    version:
      description: The version that it runs; empty when it does not answer.
      type: str
      sample: 3.5.35
    healthy:
      description: Whether it is healthy.
      type: bool
    leader:
      description: Whether it leads.
      type: bool
    done:
      description: Whether it runs the version and is healthy.
      type: bool
code:
  description: The gRPC code of the refusal, for example 9 (failed precondition) or 14 (unavailable).
  returned: when etcd or the module refused
  type: int
  sample: 9
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.connection import Connection
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import (
    FAILED_PRECONDITION,
    INVALID_ARGUMENT,
    UNAVAILABLE,
    EtcdError,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.leadership import move_leader
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.maintenance import set_downgrade
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.module import Result, make_module, run
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.restart_order import transferee, voters
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.upgrade import Outlook, outlook
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import parse
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import ClusterView, look

_PATIENCE = 60.0  # seconds for etcd to prepare; it checks every 4


def main() -> None:
    module = make_module(
        {
            "version": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["planned", "prepared", "ready"], "default": "planned"},
            "member": {"type": "str"},
            "allow_downgrade": {"type": "bool", "default": False},
        }
    )
    run(module, lambda connection: _work(module, connection))


def _work(module: AnsibleModule, connection: Connection) -> Result:
    _checked(module.params["version"])
    view, ahead = _look(module, connection)
    if ahead.refused:
        raise EtcdError(FAILED_PRECONDITION, ahead.refused)
    changed = False
    match module.params["state"]:
        case "prepared":
            changed = _prepare(module, connection, view, ahead)
            if not module.check_mode:
                view, ahead = _look(module, connection)
        case "ready":
            return _turn(module, connection, view, ahead)
    return _result(module, view, ahead, changed=changed, waits=ahead.waits)


def _checked(version: str) -> None:
    try:
        parse(version)
    except ValueError as error:
        raise EtcdError(INVALID_ARGUMENT, str(error)) from error


def _look(module: AnsibleModule, connection: Connection) -> tuple[ClusterView, Outlook]:
    view = look(connection, module.params["endpoints"]).require_members().require_leader()
    return view, outlook(view, module.params["version"], allow_downgrade=module.params["allow_downgrade"])


def _turn(module: AnsibleModule, connection: Connection, view: ClusterView, ahead: Outlook) -> Result:
    """Whether the member may be stopped now."""
    name = module.params["member"] or (ahead.order[0] if ahead.order else "")
    waits, changed = ahead.waits, False
    asked = voters(view, module.params["version"])
    if name and name not in [voter.name for voter in asked]:
        raise EtcdError(INVALID_ARGUMENT, f"there is no voter {name}; there are {', '.join(v.name for v in asked)}")
    if ahead.downgrade:
        waits = f"the downgrade to {ahead.downgrade} is not enabled: use state=prepared first"
    try:
        next_leader = transferee(asked, name) if name and not waits else None
    except EtcdError as error:
        waits, next_leader = str(error), None
    if next_leader:
        changed = True
        if not module.check_mode:
            move_leader(connection, view, next_leader.id)
            view, ahead = _look(module, connection)
    return _result(module, view, ahead, changed=changed, waits=waits)


def _prepare(module: AnsibleModule, connection: Connection, view: ClusterView, ahead: Outlook) -> bool:
    """Prepare etcd; tells whether anything was to be done."""
    wanted = ahead.downgrade or ahead.old_log
    if not wanted:
        return False
    if ahead.waits:
        raise EtcdError(FAILED_PRECONDITION, f"etcd can't be prepared now: {ahead.waits}")
    if module.check_mode:
        return True
    # The cluster version without a pending downgrade, also if an earlier try was interrupted.
    oldest = min((one.version for one in view.members if one.version), key=parse)
    before = ".".join(oldest.split(".")[:2])
    set_downgrade(connection, view, wanted)
    _until(module, connection, wanted)
    if ahead.old_log and not ahead.downgrade:
        set_downgrade(connection, look(connection, module.params["endpoints"]).require_members(), "")
        _until(module, connection, before)
    return True


def _until(module: AnsibleModule, connection: Connection, series: str) -> None:
    """Wait until the cluster version and every storage version are of that minor version."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        voting = look(connection, module.params["endpoints"]).voters
        agreed = {one.cluster_version for one in voting}
        stored = {one.status.storage_version for one in voting if one.status and one.status.storage_version}
        healthy = bool(voting) and all(one.healthy for one in voting)
        if healthy and all(version.startswith(f"{series}.") for version in agreed | stored):
            return
        time.sleep(0.5)
    raise EtcdError(UNAVAILABLE, f"etcd did not agree on {series} within {_PATIENCE:g} s; is every member healthy?")


def _result(module: AnsibleModule, view: ClusterView, ahead: Outlook, *, changed: bool, waits: str) -> Result:
    wanted = module.params["version"]
    members = [
        {
            "name": one.member.name,
            "version": one.status.version if one.status else "",
            "healthy": bool(one.healthy),
            "leader": one.member.id == view.leader_id,
            "done": bool(one.healthy and one.status and one.status.version == wanted),
        }
        for one in view.members
    ]
    return {
        "changed": changed,
        "ready": not waits and bool(ahead.order),
        "waits": waits,
        "done": ahead.done,
        "order": list(ahead.order),
        "cluster_version": ahead.cluster_version,
        "members": members,
    }


if __name__ == "__main__":
    main()
