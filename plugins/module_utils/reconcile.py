"""One reconcile, the same for every kind: parse → observe → plan → report. Acting is the role's part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from ansible.module_utils.basic import AnsibleModule

from .kube.client import Kube, connect
from .kube.errors import ChangedError, KubeError
from .kube.events import Event
from .kube.manifest import Manifest
from .kube.reporting import report
from .plan import SOON, Plan, spread, transition

# Documented in plugins/doc_fragments/kube.py.
OPTIONS: dict[str, Any] = {
    "namespace": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
}
Status = dict[str, Any]


class Declared(Protocol):
    """A custom resource as its dataclass."""

    @property
    def uid(self) -> str: ...
    @property
    def deleting(self) -> bool: ...


D = TypeVar("D", bound=Declared)
S = TypeVar("S")


def _transition(_: Any, plan: Plan, before: Status) -> list[Event]:
    return transition(plan, before)


def _valid(_api: Kube, _observed: Any, plan: Plan) -> Plan:
    return plan


def _silent(_api: Kube, _declared: Any, _plan: Plan, _before: Status) -> None:
    """Most kinds tell no other object."""


@dataclass(frozen=True)
class Kind(Generic[D, S]):
    """How an object of one kind is parsed, observed, planned and reported. `before` is its status so far."""

    name: str
    parse: Callable[[Manifest], D]
    observe: Callable[[Kube, D, Status], S]
    plan: Callable[[D, S, Status], Plan]
    status: Callable[[D, S, Plan, Status], Status]
    gone: Callable[[str], Plan]  # the plan when there is no such object
    abandoned: Callable[[D], Plan] | None = None  # the plan when its namespace is being deleted and takes nothing new
    events: Callable[[D, Plan, Status], list[Event]] = _transition
    validate: Callable[[Kube, S, Plan], Plan] = _valid  # by dry run, before it is reported
    notify: Callable[[Kube, D, Plan, Status], None] = _silent  # other objects, before it is reported


def reconcile(kind: Kind[D, S], namespace: str, name: str, *, write: bool) -> tuple[bool, Plan]:
    """Observe one object, plan and report; tells whether the status changed, and the plan."""
    api = connect()
    resource = api.get(kind.name, namespace, name)
    if resource is None:  # deleted in the meantime
        return False, kind.gone(name)
    declared, before = kind.parse(resource), resource.get("status", {})
    observed = kind.observe(api, declared, before)
    plan = kind.validate(api, observed, kind.plan(declared, observed, before))
    if kind.abandoned and declared.deleting and _takes_nothing_new(api, plan):
        plan = kind.abandoned(declared)
    if write:
        kind.notify(api, declared, plan, before)
    after = kind.status(declared, observed, plan, before)
    try:
        changed = report(api, resource, after, kind.events(declared, plan, before), write=write)
    except ChangedError:  # what was decided may not be true any more
        return False, replace(plan, action=None, finalized=False, requeue=SOON)
    return changed, replace(plan, requeue=spread(plan.requeue, declared.uid))


def _takes_nothing_new(api: Kube, plan: Plan) -> bool:
    created = plan.action.creates if plan.action else ()
    return bool(created) and api.takes_nothing_new(created[0])


def run(kind: Kind[D, S]) -> None:
    """The whole module of a kind: reconcile one object and return the plan."""
    module = AnsibleModule(argument_spec=OPTIONS, supports_check_mode=True)
    try:
        changed, plan = reconcile(kind, module.params["namespace"], module.params["name"], write=not module.check_mode)
    except KubeError as error:
        module.fail_json(msg=str(error))
    # Changed also when an action remains: that notifies the role's handlers without a condition to evaluate.
    module.exit_json(changed=changed or plan.action is not None or plan.finalized, **plan.as_result())
