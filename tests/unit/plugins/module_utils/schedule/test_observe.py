"""What is observed of an EtcdBackupSchedule, from a real kube-apiserver."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.schedule import Schedule, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule.observe import observe
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule.plan import Observation, StartBackup
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule.planner import plan, run_due

from tests.unit.plugins.objects import Namespace

SPEC = {"cluster": "example", "destination": {"claim": {"name": "disk"}}}


def _schedule(namespace: Namespace, **spec: str) -> Schedule:
    wanted = {**SPEC, "schedule": "0 * * * *", **spec}
    return parse(namespace.resource("EtcdBackupSchedule", "hourly", wanted))


def _run(namespace: Namespace, schedule: Schedule, hours: int) -> Manifest:
    """The EtcdBackup of a run that is due so many hours after the schedule was created."""
    due = schedule.created.replace(minute=0, second=0).timestamp() + 3600 * hours
    action = plan(schedule, Observation(schedule.created.fromtimestamp(due, schedule.created.tzinfo)), {}).action
    assert isinstance(action, StartBackup)
    return namespace.create(action.backup)


def test_name_instead_of_five_fields_is_refused_with_what_to_write(namespace: Namespace) -> None:
    for name in ("@daily", "@hourly"):
        with pytest.raises(
            KubeError, match=r"write 0 0 \* \* \* instead of @daily, and 0 \* \* \* \* instead of @hourly"
        ):
            _schedule(namespace, schedule=name)


def test_backups_of_this_schedule_are_observed_with_their_due_time(namespace: Namespace) -> None:
    schedule = _schedule(namespace, timeZone="Europe/Berlin")
    namespace.resource("EtcdBackup", "by-hand", SPEC)
    first, second = _run(namespace, schedule, 1), _run(namespace, schedule, 2)
    name = second["metadata"]["name"]
    done = {"phase": "Succeeded", "completionTime": "2026-11-16T12:00:00Z", "message": "Revision 7."}
    namespace.kube.patch_status("EtcdBackup", namespace.name, name, done)
    found = sorted(observe(namespace.kube, schedule, {}).backups, key=lambda each: each.due)
    assert [each.name for each in found] == [first["metadata"]["name"], name]
    assert [each.phase for each in found] == ["Pending", "Succeeded"]
    assert (found[1].completed, found[1].message, found[1].deleting) == ("2026-11-16T12:00:00Z", "Revision 7.", False)
    assert schedule.tick(found[0].due) == found[0].name
    assert {str(each.due.tzinfo) for each in found} == {"Europe/Berlin"}


def test_backups_of_an_earlier_schedule_of_the_same_name_are_not_observed(namespace: Namespace) -> None:
    schedule = _schedule(namespace)
    _run(namespace, replace(schedule, uid="another"), 1)
    assert observe(namespace.kube, schedule, {}).backups == ()


def test_backup_that_is_being_deleted_is_observed_as_such(namespace: Namespace) -> None:
    schedule = _schedule(namespace)
    made = _run(namespace, schedule, 1)
    name = made["metadata"]["name"]
    made["metadata"]["finalizers"] = ["etcdops.dev/finalizer"]
    del made["metadata"]["managedFields"]
    namespace.kube.apply(made)
    namespace.kube.delete("EtcdBackup", namespace.name, name)
    (found,) = observe(namespace.kube, schedule, {}).backups
    assert found.deleting


def test_unknown_time_zone_is_left_to_the_planner(namespace: Namespace) -> None:
    schedule = _schedule(namespace)
    _run(namespace, schedule, 1)
    (found,) = observe(namespace.kube, replace(schedule, zone="Mars/Olympus"), {}).backups
    assert str(found.due.tzinfo) == "UTC"


def test_backup_with_the_name_of_the_run_that_is_due_is_observed(namespace: Namespace) -> None:
    schedule = replace(_schedule(namespace), created=datetime.now(UTC) - timedelta(hours=1))
    due = run_due(schedule, datetime.now(UTC), {})
    assert not observe(namespace.kube, schedule, {}).foreign
    namespace.resource("EtcdBackup", due, SPEC)
    assert observe(namespace.kube, schedule, {}).foreign
    assert not observe(namespace.kube, schedule, {"lastScheduleTime": datetime.now(UTC).isoformat()}).foreign
    labels = {"etcdops.dev/schedule-uid": schedule.uid}
    namespace.kube.delete("EtcdBackup", namespace.name, due)
    at = datetime.now(UTC).replace(minute=0, second=0, microsecond=0).isoformat()
    namespace.resource("EtcdBackup", due, SPEC, labels=labels, annotations={"etcdops.dev/due": at})
    assert not observe(namespace.kube, schedule, {}).foreign
