"""Writing what a reconcile has to report: events, then the status."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .client import Kube
from .conditions import differs
from .errors import KubeError
from .events import Event, event_manifest
from .manifest import Manifest

_LONGEST = 8192  # characters of a message; the CRDs allow more


def report(api: Kube, resource: Manifest, status: dict[str, Any], events: Sequence[Event], *, write: bool) -> bool:
    """Create the events and write the status, if it changed; True when there was anything to write."""
    meta = resource["metadata"]
    status = _bounded(status)
    changed = differs(status, resource.get("status", {}))
    # Events first: after a crash in between, an event is repeated rather than lost.
    for event in events if write else []:
        with suppress(KubeError):  # a namespace that is being deleted accepts no events
            api.create(event_manifest(resource, event))
    if changed and write:
        api.patch_status(resource["kind"], meta["namespace"], meta["name"], status)
    return changed or bool(events)


def _bounded(status: dict[str, Any]) -> dict[str, Any]:
    """With messages that the API server accepts, whatever they quote."""
    told = [{**each, "message": each["message"][:_LONGEST]} for each in status.get("conditions", [])]
    texts = {name: status[name][:_LONGEST] for name in ("message", "failure") if status.get(name)}
    return status | texts | ({"conditions": told} if told else {})
