"""What all kinds tell in the same way: conditions, events, and whether there is news."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from .client import Kube, KubeError
from .manifest import Manifest


@dataclass(frozen=True)
class Event:
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def time_text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def sentence(words: str) -> str:
    """With a capital, unless it begins with a place, and a full stop."""
    first = words.partition(" ")[0]
    begun = words if "://" in first else f"{words[0].upper()}{words[1:]}"
    return f"{begun.rstrip('.')}."


def conditions(
    said: Sequence[tuple[str, str, str, str]], generation: int, before: Sequence[dict[str, Any]], now: datetime
) -> list[dict[str, Any]]:
    """Conditions (type, status, reason, message); the time of each is that of the last change of its status."""
    since = {each["type"]: each for each in before}
    return [
        {
            "type": kind,
            "status": state,
            "reason": reason,
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": since[kind]["lastTransitionTime"]
            if since.get(kind, {}).get("status") == state
            else time_text(now),
        }
        for kind, state, reason, message in said
    ]


def differs(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Would writing the new status change anything? None for a field means that it goes."""
    return any(
        differs(value, old.get(key) or {}) if isinstance(value, dict) else value != old.get(key)
        for key, value in new.items()
    )


def report(api: Kube, resource: Manifest, status: dict[str, Any], events: Sequence[Event], *, write: bool) -> bool:
    """Write the status and the events, where there is news; tells whether there was."""
    meta = resource["metadata"]
    changed = differs(status, resource.get("status", {}))
    for event in events if write else []:  # first: after a crash in between it is told twice, and not never
        with suppress(KubeError):  # a namespace that is going takes no more events
            api.create(event_manifest(resource, event))
    if changed and write:
        api.patch_status(resource["kind"], meta["namespace"], meta["name"], status)
    return changed or bool(events)


def event_manifest(resource: Manifest, event: Event) -> Manifest:
    meta, now = resource["metadata"], datetime.now(UTC)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "namespace": meta["namespace"],
            "name": f"{meta['name']}.{int(now.timestamp() * 1_000_000):x}",
        },
        "involvedObject": {
            "apiVersion": resource["apiVersion"],
            "kind": resource["kind"],
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        },
        "type": event.type,
        "reason": event.reason,
        "message": event.message[:1024],
        "firstTimestamp": time_text(now),
        "lastTimestamp": time_text(now),
        "count": 1,
        "source": {"component": "etcdops"},
        "reportingComponent": "etcdops",
        "reportingInstance": "etcdops",
    }


def transition(before: dict[str, Any], plan: Planned) -> list[Event]:
    """An event, if the phase or its reason is another than before."""
    known = {each["reason"] for each in before.get("conditions", [])}
    if plan.reason.quiet or (before.get("phase") == plan.phase and plan.reason in known):
        return []
    return [Event("Warning" if plan.reason.warning else "Normal", str(plan.reason), plan.message)]
