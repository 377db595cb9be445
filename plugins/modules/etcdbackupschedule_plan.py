#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""The operator's eyes, mind and mouth for an EtcdBackupSchedule."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdbackupschedule_plan
short_description: Look at an EtcdBackupSchedule, decide on the next step and say so
description:
  - Reads the EtcdBackupSchedule and the EtcdBackups that it has made; decides on exactly one step; writes the status
    and events where they changed.
  - The step itself is not taken; the role C(etcdbackupschedule) does that.
author: The etcdops authors
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.plan
"""

EXAMPLES = r"""
- name: What would the operator do next?
  etcdops.etcd.etcdbackupschedule_plan:
    namespace: default
    name: nightly
  check_mode: true
  register: plan
"""

RETURN = r"""
step:
  description: The step to take, C(idle) for none.
  type: str
  returned: always
phase:
  description: The state that the schedule is in.
  type: str
  returned: always
message:
  description: Why, for a person.
  type: str
  returned: always
create:
  description: Objects to make in the step.
  type: list
  elements: dict
  returned: always
delete:
  description: EtcdBackups to delete in the step.
  type: list
  elements: str
  returned: always
requeue:
  description: When to look again, as a Go duration.
  type: str
  returned: always
"""

from datetime import UTC, datetime
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import DUE, SCHEDULE_UID
from ansible_collections.etcdops.etcd.plugins.module_utils.api.schedule import read, zone_of
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import client as kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.events import transition
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.reporting import report
from ansible_collections.etcdops.etcd.plugins.module_utils.reconcile import planned, run
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule import planner as schedule_planner

_NO_NEWS = ("Waiting", "Began")


def main() -> None:
    run(_reconcile)


def _reconcile(namespace: str, name: str, write: bool) -> dict[str, Any]:
    api = kube.connect()
    resource = api.get("EtcdBackupSchedule", namespace, name)
    if resource is None or "deletionTimestamp" in resource["metadata"]:
        gone = schedule_planner.Plan(schedule_planner.Phase.SUSPENDED, "Gone", "The schedule is gone.")
        return planned(False, gone, "create", "delete")
    schedule = read(resource)
    before: dict[str, Any] = resource.get("status", {})
    zone = zone_of(schedule)
    found = api.list("EtcdBackup", namespace, f"{SCHEDULE_UID}={schedule.uid}")
    seen = schedule_planner.Observed(datetime.now(UTC), tuple(_made(each, zone) for each in found))
    plan = schedule_planner.plan(schedule, seen, before)
    after = schedule_planner.status(schedule, seen, plan, before)
    news = transition(before, str(plan.phase), plan.reason, plan.message, warning=plan.warning)
    changed = report(api, resource, after, [] if plan.reason in _NO_NEWS else news, write=write)
    return planned(changed, plan, "create", "delete")


def _made(resource: Manifest, zone: Any) -> schedule_planner.Made:
    meta, status = resource["metadata"], resource.get("status", {})
    due = datetime.fromisoformat(meta["annotations"][DUE])
    return schedule_planner.Made(
        name=meta["name"],
        due=due.astimezone(zone),
        phase=status.get("phase", "Pending"),
        completed=status.get("completionTime", ""),
        message=status.get("message", ""),
        deleting="deletionTimestamp" in meta,
    )


if __name__ == "__main__":
    main()
