"""Events as plain values and as objects."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from .conditions import time_text
from .manifest import Manifest

_COMPONENT = "etcdops"


@dataclass(frozen=True)
class Event:
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def event_manifest(resource: Manifest, event: Event) -> Manifest:
    """The Event object about `resource`."""
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
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
        "reportingInstance": _COMPONENT,
    }
