#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Observe, plan and report for an EtcdBackupSchedule."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdbackupschedule_plan
short_description: Observe an EtcdBackupSchedule, plan the next action and report it
description:
  - Reads the EtcdBackupSchedule and the EtcdBackups that it created; plans at most one action; writes the status and
    events where they changed.
  - The action itself is taken by the role C(etcdbackupschedule).
author: The etcdops authors
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.plan
"""

EXAMPLES = r"""
- name: Show what the operator would do next
  etcdops.etcd.etcdbackupschedule_plan:
    namespace: default
    name: example
  check_mode: true
  register: plan
"""

RETURN = r"""
phase:
  description: The phase of the object.
  type: str
  returned: always
reason:
  description: Why it is in this phase, as one word.
  type: str
  returned: always
message:
  description: Why, for a person.
  type: str
  returned: always
action:
  description: The action to take, with its C(name) and its fields; null for none.
  type: dict
  returned: always
requeue:
  description: When to reconcile again, as a Go duration.
  type: str
  returned: always
finalized:
  description: Whether nothing is left to do for an object that is being deleted.
  type: bool
  returned: always
"""

from ansible_collections.etcdops.etcd.plugins.module_utils.api.schedule import parse
from ansible_collections.etcdops.etcd.plugins.module_utils.reconcile import Kind, run
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule import planner
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule.observe import observe

KIND = Kind("EtcdBackupSchedule", parse, observe, planner.plan, planner.status, planner.gone, events=planner.events)


def main() -> None:
    run(KIND)


if __name__ == "__main__":
    main()
