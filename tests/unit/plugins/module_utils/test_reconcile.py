"""The engine that all kinds share, on a real kube-apiserver, with a kind that does what each test needs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import Backup, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.plan import Observation, Phase, Reason, StartJob
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.planner import status
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import SOON, Plan
from ansible_collections.etcdops.etcd.plugins.module_utils.reconcile import Kind, reconcile, run
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule.plan import Reason as ScheduleReason

from tests.unit.plugins.objects import Namespace
from tests.unit.plugins.running import fail, succeed

NAME = "one"
SPEC = {"cluster": "example", "destination": {"claim": {"name": "disk"}}}
RUNNING = Plan(Phase.RUNNING, Reason.RUNNING, "Taking a snapshot of example.", requeue=5)
GONE = Plan(Phase.DELETING, Reason.GONE, "It is gone.", finalized=True)
ABANDONED = Plan(Phase.DELETING, Reason.LEFT_BEHIND, "The data stays.", finalized=True)


@dataclass
class Script:
    """A kind whose plan is set by the test, and what the engine asked it."""

    plan: Plan = RUNNING
    seen: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def kind(self) -> Kind[Backup, Observation]:
        return Kind(
            "EtcdBackup",
            parse,
            self._observe,
            self._plan,
            status,
            gone=lambda name: replace(GONE, message=f"{name} is gone."),
            abandoned=lambda _: ABANDONED,
            notify=self._notify,
        )

    def _observe(self, _: Kube, backup: Backup, before: dict[str, Any]) -> Observation:
        self.seen.append(("observe", (backup.name, before.get("phase"))))
        return Observation(datetime(2026, 11, 16, 12, tzinfo=UTC))

    def _plan(self, *_: Any) -> Plan:
        return self.plan

    def _notify(self, api: Kube, backup: Backup, plan: Plan, before: dict[str, Any]) -> None:
        stored = api.get("EtcdBackup", backup.namespace, backup.name) or {}
        self.seen.append(("notify", (plan.reason, before.get("phase"), stored.get("status", {}).get("phase"))))


@pytest.fixture
def script(namespace: Namespace) -> Script:
    namespace.resource("EtcdBackup", NAME, SPEC)
    return Script()


def _reconcile(script: Script, namespace: Namespace, *, write: bool = True) -> tuple[bool, Plan]:
    return reconcile(script.kind, namespace.name, NAME, write=write)


def _events(namespace: Namespace) -> list[tuple[str, str, str]]:
    return [(event["type"], event["reason"], event["message"]) for event in namespace.events(NAME)]


def test_status_and_event_are_written_once(script: Script, namespace: Namespace) -> None:
    changed, plan = _reconcile(script, namespace)
    assert (changed, plan) == (True, RUNNING)
    first = namespace.get("EtcdBackup", NAME)
    assert (first["status"]["phase"], first["status"]["message"]) == ("Running", RUNNING.message)
    assert {each["observedGeneration"] for each in first["status"]["conditions"]} == {1}
    assert _events(namespace) == [("Normal", "Running", RUNNING.message)]

    assert _reconcile(script, namespace)[0] is False
    assert namespace.get("EtcdBackup", NAME) == first
    assert len(_events(namespace)) == 1
    assert [seen for seen in script.seen if seen[0] == "observe"] == [
        ("observe", (NAME, None)),
        ("observe", (NAME, "Running")),
    ]


@pytest.mark.parametrize("what", ["object", "status"])
def test_status_that_was_decided_on_another_state_is_not_written(
    script: Script, namespace: Namespace, what: str
) -> None:
    """A person makes another object, or another operator writes the status, while this one decides."""

    def meanwhile(*_: Any) -> None:
        if what == "object":
            namespace.kube.delete("EtcdBackup", namespace.name, NAME)
            namespace.resource("EtcdBackup", NAME, SPEC)
        else:
            namespace.kube.patch_status("EtcdBackup", namespace.name, NAME, {"phase": "Succeeded"})

    script.plan = replace(RUNNING, action=StartJob(()))
    changed, plan = reconcile(replace(script.kind, notify=meanwhile), namespace.name, NAME, write=True)
    assert (changed, plan.action, plan.requeue) == (False, None, SOON)
    assert namespace.get("EtcdBackup", NAME).get("status", {}).get("phase") != "Running"


def test_status_is_written_although_an_annotation_was_set_meanwhile(script: Script, namespace: Namespace) -> None:
    def meanwhile(*_: Any) -> None:
        namespace.kube.annotate("EtcdBackup", namespace.name, NAME, {"example.com/a": "b"})

    assert reconcile(replace(script.kind, notify=meanwhile), namespace.name, NAME, write=True)[0]
    assert namespace.get("EtcdBackup", NAME)["status"]["phase"] == "Running"


def test_check_mode_reports_the_change_and_writes_nothing(script: Script, namespace: Namespace) -> None:
    before = namespace.get("EtcdBackup", NAME)
    changed, plan = _reconcile(script, namespace, write=False)
    assert (changed, plan) == (True, RUNNING)
    assert namespace.get("EtcdBackup", NAME) == before
    assert _events(namespace) == []
    assert [name for name, _ in script.seen] == ["observe"]  # no other object is told either


def test_event_is_a_warning_if_its_reason_is(script: Script, namespace: Namespace) -> None:
    script.plan = Plan(Phase.FAILED, Reason.FAILED, "The disk is full.")
    _reconcile(script, namespace)
    assert _events(namespace) == [("Warning", "Failed", "The disk is full.")]


def test_another_message_alone_is_no_event(script: Script, namespace: Namespace) -> None:
    _reconcile(script, namespace)
    script.plan = replace(RUNNING, message="Verifying the snapshot.")
    assert _reconcile(script, namespace)[0] is True
    assert namespace.get("EtcdBackup", NAME)["status"]["message"] == "Verifying the snapshot."
    assert len(_events(namespace)) == 1


def test_another_reason_or_phase_is_an_event(script: Script, namespace: Namespace) -> None:
    _reconcile(script, namespace)
    script.plan = replace(RUNNING, reason=Reason.CLEANING_UP)
    _reconcile(script, namespace)
    script.plan = replace(RUNNING, phase=Phase.DELETING, reason=Reason.CLEANING_UP)
    _reconcile(script, namespace)
    assert [reason for _, reason, _ in _events(namespace)] == ["Running", "CleaningUp", "CleaningUp"]


def test_quiet_reason_is_no_event(script: Script, namespace: Namespace) -> None:
    script.plan = replace(RUNNING, reason=ScheduleReason.WAITING)
    assert _reconcile(script, namespace)[0] is True
    assert _events(namespace) == []


def test_kind_may_decide_about_its_events(script: Script, namespace: Namespace) -> None:
    kind = replace(script.kind, events=lambda *_: [])
    assert reconcile(kind, namespace.name, NAME, write=True)[0] is True
    assert _events(namespace) == []


def test_object_that_does_not_exist_is_gone(script: Script, namespace: Namespace) -> None:
    changed, plan = reconcile(script.kind, namespace.name, "absent", write=True)
    assert (changed, plan.reason, plan.message) == (False, Reason.GONE, "absent is gone.")
    assert (plan.finalized, script.seen) == (True, [])


def test_other_objects_are_notified_before_the_status_is_written(script: Script, namespace: Namespace) -> None:
    """After a crash in between they are notified again rather than never."""
    _reconcile(script, namespace)
    script.plan = Plan(Phase.FAILED, Reason.FAILED, "The disk is full.")
    _reconcile(script, namespace)
    assert [seen for seen in script.seen if seen[0] == "notify"] == [
        ("notify", (Reason.RUNNING, None, None)),
        ("notify", (Reason.FAILED, "Running", "Running")),
    ]


def test_plan_that_validation_refuses_is_not_reported(script: Script, namespace: Namespace) -> None:
    refused = Plan(Phase.PENDING, Reason.WAITING_FOR_OBJECTS, "The API server refuses it.")

    def validate(api: Kube, observed: Observation, plan: Plan) -> Plan:
        assert isinstance(api, Kube)
        assert observed.now.year == 2026
        assert plan == RUNNING
        return refused

    _, plan = reconcile(replace(script.kind, validate=validate), namespace.name, NAME, write=True)
    assert plan.reason is Reason.WAITING_FOR_OBJECTS
    assert namespace.get("EtcdBackup", NAME)["status"]["message"] == refused.message


def _creating(namespace: Namespace) -> Plan:
    meta = {"namespace": namespace.name, "name": "late"}
    return replace(RUNNING, action=StartJob(({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta},)))


def _deleted(namespace: Namespace) -> Script:
    """An EtcdBackup that is being deleted."""
    namespace.resource("EtcdBackup", NAME, SPEC, finalizers=["etcdops.dev/finalizer"])
    namespace.kube.delete("EtcdBackup", namespace.name, NAME)
    return Script(_creating(namespace))


def test_deleted_object_is_abandoned_when_its_namespace_takes_nothing_new(namespace: Namespace) -> None:
    script = _deleted(namespace)
    namespace.end()
    _, plan = _reconcile(script, namespace)
    assert (plan.reason, plan.finalized, plan.action) == (Reason.LEFT_BEHIND, True, None)
    assert namespace.get("EtcdBackup", NAME)["status"]["message"] == "The data stays."  # though events are refused
    assert _events(namespace) == []


def test_deleted_object_is_not_abandoned_while_its_namespace_stays(namespace: Namespace) -> None:
    script = _deleted(namespace)
    assert _reconcile(script, namespace)[1] == script.plan


def test_deleted_object_is_not_abandoned_when_it_creates_nothing(namespace: Namespace) -> None:
    script = _deleted(namespace)
    script.plan = RUNNING
    namespace.end()
    assert _reconcile(script, namespace)[1] == RUNNING


def test_object_that_is_not_deleted_is_not_abandoned(script: Script, namespace: Namespace) -> None:
    script.plan = _creating(namespace)
    namespace.end()
    assert _reconcile(script, namespace)[1] == script.plan


def test_requeue_is_spread_but_never_later(script: Script, namespace: Namespace) -> None:
    """A run of a schedule may be due then."""
    script.plan = replace(RUNNING, requeue=300)
    first = _reconcile(script, namespace)[1].requeue
    assert 270 <= first <= 300
    assert _reconcile(script, namespace)[1].requeue == first


def _module(kind: Kind[Any, Any]) -> ModuleType:
    module = ModuleType("plan")
    vars(module)["main"] = lambda: run(kind)
    return module


def test_module_returns_the_plan(script: Script, namespace: Namespace) -> None:
    script.plan = _creating(namespace)
    arguments: dict[str, Any] = {"also": {"namespace": namespace.name, "name": NAME}}
    foreseen = succeed(_module(script.kind), check=True, **arguments)
    assert foreseen["changed"] is True
    assert "status" not in namespace.get("EtcdBackup", NAME)
    result = succeed(_module(script.kind), **arguments)
    assert {key: result[key] for key in ("phase", "reason", "message", "requeue", "finalized")} == {
        "phase": "Running",
        "reason": "Running",
        "message": RUNNING.message,
        "requeue": "5s",
        "finalized": False,
    }
    assert result["action"]["name"] == "start_job"
    assert result["action"]["objects"][0]["metadata"]["name"] == "late"
    assert succeed(_module(script.kind), **arguments)["changed"] is True  # the action remains
    script.plan = RUNNING
    assert succeed(_module(script.kind), **arguments)["changed"] is False


def test_module_fails_when_the_api_server_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/kubeconfig")
    assert "/nowhere/kubeconfig" in fail(_module(Script().kind), also={"namespace": "ns", "name": NAME})
