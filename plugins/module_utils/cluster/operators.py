"""Whether two operators serve one EtcdCluster. Pure.

Effects carry preconditions, so two operators do no harm; but events and status alternate. An operator that finds the
name of another one in the status writes its own. So two that run take turns.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from .memory import Serving
from .observation import Observation

# Longer than a settled cluster is left alone: within this time, every operator that runs has had its turn.
_TURNS = timedelta(minutes=15)


def serving(observed: Observation) -> Serving | None:
    """Who serves the cluster now; None when no operator has a name."""
    own, known, now = observed.operator, observed.memory.serving, observed.now
    if not own or known is None:
        return Serving(own, now) if own else known
    recent = now - known.since < _TURNS
    if known.name != own:
        return Serving(own, now, before=known.name, contested=recent and known.before == own)
    return known if recent else replace(known, contested=False)


def told(found: Serving) -> str:
    return (
        f"Operators {found.name} and {found.before} both serve this EtcdCluster. Remove one of them, or let them watch "
        "different namespaces."
    )
