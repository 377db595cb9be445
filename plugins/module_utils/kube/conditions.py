"""Conditions of a status, and whether writing a status would change anything."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any


def time_text(moment: datetime) -> str:
    """A time in the form that Kubernetes uses."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def sentence(words: str) -> str:
    """With a capital letter, unless it starts with a URL, and a full stop."""
    first = words.partition(" ")[0]
    begun = words if "://" in first else f"{words[0].upper()}{words[1:]}"
    return f"{begun.rstrip('.')}."


def conditions(
    said: Sequence[tuple[str, str, str, str]], generation: int, before: Sequence[dict[str, Any]], now: datetime
) -> list[dict[str, Any]]:
    """Conditions from (type, status, reason, message); lastTransitionTime moves only when the status changes."""
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
    """Whether a merge patch with the new status would change the old one; None removes a field."""
    return any(
        differs(value, old.get(key) or {}) if isinstance(value, dict) else value != old.get(key)
        for key, value in new.items()
    )
