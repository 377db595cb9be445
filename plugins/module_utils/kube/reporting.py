"""Writing what a reconcile has to report: events, then the status."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .client import Kube
from .conditions import differs
from .errors import ChangedError, KubeError
from .events import Event, event_manifest
from .manifest import Manifest

_LONGEST = 8192  # characters of a message; the CRDs allow more
_TRIES = 5


def report(api: Kube, resource: Manifest, status: dict[str, Any], events: Sequence[Event], *, write: bool) -> bool:
    """Create the events and write the status, if it changed; True when there was anything to write.

    ChangedError when the object is not the one any more that the status was decided on.
    """
    status = _bounded(status)
    changed = differs(status, resource.get("status", {}))
    # Events first: after a crash in between, an event is repeated rather than lost.
    for event in events if write else []:
        with suppress(KubeError):  # a namespace that is being deleted accepts no events
            api.create(event_manifest(resource, event))
    if changed and write:
        _write(api, resource, status)
    return changed or bool(events)


def _bounded(status: dict[str, Any]) -> dict[str, Any]:
    """With messages that the API server accepts, whatever they quote."""
    told = [{**each, "message": each["message"][:_LONGEST]} for each in status.get("conditions", [])]
    texts = {name: status[name][:_LONGEST] for name in ("message", "failure") if status.get(name)}
    return status | texts | ({"conditions": told} if told else {})


def _write(api: Kube, resource: Manifest, status: dict[str, Any]) -> None:
    """Write the status, unless another operator wrote it or a person edited the spec since the object was read."""
    kind, meta = resource["kind"], resource["metadata"]
    version = meta["resourceVersion"]
    for _ in range(_TRIES):
        if api.patch_status(kind, meta["namespace"], meta["name"], status, version):
            return
        now = api.get(kind, meta["namespace"], meta["name"])
        if now is None:  # deleted in the meantime
            return
        version = now["metadata"]["resourceVersion"]
        if _decided_on(now) != _decided_on(resource):
            break  # anything else, such as an annotation, is no reason to stop
    raise ChangedError(409, f"{kind} {meta['name']} was changed in the meantime, so it is looked at again first")


def _decided_on(resource: Manifest) -> tuple[Any, ...]:
    return resource["metadata"]["uid"], resource["metadata"].get("generation"), resource.get("status", {})
