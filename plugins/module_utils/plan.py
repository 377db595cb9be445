"""What every planner returns: phase, reason and message for people, at most one action, and when to look again."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Any, Self

from .kube.events import Event
from .kube.manifest import Manifest

# Seconds until the next reconcile. Readiness arrives as an event (playbooks/etcdcluster_nudge.yml), so a settled object
# is only looked at for what causes no event.
SOON, WATCHFUL, PATIENT, SETTLED = 1, 5, 15, 300

# Flags of a Reason.
BLOCKED, WARNING, QUIET = "blocked", "warning", "quiet"


class Phase(StrEnum):
    """The phase of an object, as `kubectl get` shows it, with its meaning. docs/conditions.md lists them."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:
        phase = str.__new__(cls, value)
        phase._value_ = value
        phase.meaning = meaning
        return phase


class Reason(StrEnum):
    """Why an object is in its phase: the word in conditions and events, with its cause and what a person should do.

    `blocked`: the operator waits for a person. `warning`: its event is a Warning. `quiet`: no event at all.
    """

    cause: str
    remedy: str
    blocked: bool
    warning: bool
    quiet: bool

    def __new__(cls, value: str, cause: str, remedy: str = "", flag: str = "") -> Self:
        reason = str.__new__(cls, value)
        reason._value_ = value
        reason.cause, reason.remedy = cause, remedy
        reason.blocked, reason.quiet = flag == BLOCKED, flag == QUIET
        reason.warning = flag in (BLOCKED, WARNING)
        return reason


class Action:
    """One thing to do. Its class name in snake case is the task file in roles/<kind>/tasks/actions/."""

    @property
    def name(self) -> str:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def creates(self) -> tuple[Manifest, ...]:
        """New objects that it needs; a namespace that is being deleted refuses them."""
        return ()


@dataclass(frozen=True)
class Ref:
    """An object by name and uid: the precondition of an effect on exactly this object.

    With `version`, its resourceVersion, also the precondition that nothing about it has changed.
    """

    name: str
    uid: str
    version: str = ""


@dataclass(frozen=True)
class Plan:
    phase: Phase
    reason: Reason
    message: str
    action: Action | None = None
    requeue: int = SOON
    record: Mapping[str, Any] = field(default_factory=dict)  # status fields that the next reconcile must know
    finalized: bool = False  # a deleted object: nothing is left to do, the finalizer may go

    def as_result(self) -> dict[str, Any]:
        """The plan as an Ansible module returns it; a role reads `plan.action.<field>`."""
        return {
            "phase": str(self.phase),
            "reason": str(self.reason),
            "message": self.message,
            "action": {"name": self.action.name, **_plain(self.action)} if self.action else None,
            "requeue": f"{self.requeue}s",
            "finalized": self.finalized,
        }


def transition(plan: Plan, before: Mapping[str, Any]) -> list[Event]:
    """An event, if the phase or its reason is another than in the status before."""
    known = {each["reason"] for each in before.get("conditions", [])}
    if plan.reason.quiet or (before.get("phase") == plan.phase and plan.reason in known):
        return []
    return [Event("Warning" if plan.reason.warning else "Normal", str(plan.reason), plan.message)]


def spread(seconds: int, uid: str) -> int:
    """Jitter, stable for each object, so that objects created together do not reconcile together.

    Up to a tenth earlier and never later: a run of a schedule may be due then.
    """
    return seconds - zlib.crc32(uid.encode()) % (seconds // 10 + 1)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value
