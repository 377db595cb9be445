"""Whether a live object lacks what is desired."""

from __future__ import annotations

from typing import Any

from . import quantity


def differs(desired: Any, live: Any) -> bool:
    """Fields that are not desired are not compared: others may own them."""
    if desired == live:
        return False
    if isinstance(desired, dict):
        return not isinstance(live, dict) or any(differs(value, live.get(key)) for key, value in desired.items())
    if isinstance(desired, list):
        return (
            not isinstance(live, list)
            or len(desired) != len(live)
            or any(differs(one, other) for one, other in zip(desired, live, strict=True))
        )
    try:  # the API server writes 1024Mi as 1Gi
        return quantity.parse(str(desired)) != quantity.parse(str(live))
    except ValueError:
        return True
