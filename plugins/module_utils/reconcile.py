"""What the modules have in common that look at one object of ours, in a namespace and of a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from ansible.module_utils.basic import AnsibleModule

from .kube.client import Kube, KubeError, connect
from .kube.events import transition
from .kube.manifest import Manifest
from .kube.reporting import report


class Declared(Protocol):
    """What was read from an object of ours."""

    @property
    def deleting(self) -> bool: ...


class Seen(Protocol):
    @property
    def now(self) -> datetime: ...


class Planned(Protocol):
    @property
    def phase(self) -> Any: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def warning(self) -> bool: ...
    @property
    def create(self) -> tuple[Manifest, ...]: ...


D = TypeVar("D", bound=Declared)
S = TypeVar("S", bound=Seen)
P = TypeVar("P", bound=Planned)


def _silent(_api: Kube, _declared: Any, _plan: Any, _before: dict[str, Any]) -> None:
    """Most have nobody else to tell."""


@dataclass(frozen=True)
class Kind(Generic[D, S, P]):
    """How an object of one kind is read, looked at, decided about and reported on. The last argument is its status."""

    name: str
    read: Callable[[Manifest], D]
    observe: Callable[[Kube, D, dict[str, Any]], S]
    plan: Callable[[D, S, dict[str, Any]], P]
    status: Callable[[D, P, dict[str, Any], datetime], dict[str, Any]]
    gone: P  # when there is no such object
    stranded: Callable[[D], P]  # the plan instead, when its namespace goes and nothing new can be made there
    tell: Callable[[Kube, D, P, dict[str, Any]], None] = _silent  # others, before it is reported


def reconcile(kind: Kind[D, S, P], namespace: str, name: str, write: bool) -> tuple[bool, D | None, P]:
    """Look at one object, decide, and report; whether there was news, what it declares, and the plan."""
    api = connect()
    resource = api.get(kind.name, namespace, name)
    if resource is None:
        return False, None, kind.gone
    declared = kind.read(resource)
    before: dict[str, Any] = resource.get("status", {})
    seen = kind.observe(api, declared, before)
    plan = kind.plan(declared, seen, before)
    if declared.deleting and plan.create and api.takes_nothing_new(plan.create[0]):
        plan = kind.stranded(declared)
    if write:
        kind.tell(api, declared, plan, before)
    after = kind.status(declared, plan, before, seen.now)
    news = transition(before, str(plan.phase), plan.reason, plan.message, warning=plan.warning)
    return report(api, resource, after, news, write=write), declared, plan


def run(work: Callable[[str, str, bool], dict[str, Any]]) -> None:
    """Do the work of a module (namespace, name, whether to write) and end it with what that returns."""
    module = AnsibleModule(
        argument_spec={"namespace": {"type": "str", "required": True}, "name": {"type": "str", "required": True}},
        supports_check_mode=True,
    )
    try:
        result = work(module.params["namespace"], module.params["name"], not module.check_mode)
    except KubeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


def planned(changed: bool, plan: Any, *names: str) -> dict[str, Any]:
    """What every plan is returned with, and what else it has under these names."""
    found = {name: getattr(plan, name) for name in names}
    return {
        "changed": changed,
        "step": str(plan.step),
        "phase": str(plan.phase),
        "message": plan.message,
        "requeue": f"{plan.requeue}s",
        **{name: list(value) if isinstance(value, tuple) else value for name, value in found.items()},
    }
