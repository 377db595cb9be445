"""Alarms of etcd: what is remembered and what a person is told. Pure.

While NOSPACE is active, the operator goes on: membership changes and restarts need no space in the database, and a
larger quota is a rollout. Only an upgrade waits. While CORRUPT is active, a lost member is still replaced, because that
is how a person removes the data that differs. Nothing else is changed: each restart and each new member may spread it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..plan import PATIENT, Plan
from .plan import ELECTION, Phase, Reason
from .situation import Situation

_REASONS = {"NOSPACE": Reason.NO_SPACE, "CORRUPT": Reason.CORRUPT}  # by urgency, the last one first
_EFFECTS = {
    Reason.NO_SPACE: "so writes are refused. Free space (etcdctl compact, then etcdctl defrag) or raise "
    "spec.options.quotaBackendBytes, and then run etcdctl alarm disarm. See docs/alarms.md.",
    Reason.CORRUPT: "so reads and writes are refused: the data of the members differs. Find the member that differs "
    "with etcdctl endpoint hashkv, delete its PVC and its pod, and run etcdctl alarm disarm when it is replaced. See "
    "docs/alarms.md.",
}
Entries = Sequence[Mapping[str, str]]


def alarm_record(s: Situation) -> dict[str, Any]:
    """The status field with the alarms; None removes it."""
    names = {one.member.id: one.member.name for one in s.observed.view.members}
    found = [
        {"alarm": one.alarm, **({"member": names.get(one.member_id) or f"{one.member_id:x}"} if one.member_id else {})}
        for one in s.observed.view.alarms
    ]
    return {"alarms": found or None}


def worst(entries: Entries) -> tuple[Reason, str] | None:
    """The most urgent of the alarms in a status: its reason and what a person is told."""
    active = {reason: alarm for alarm, reason in _REASONS.items() if any(one["alarm"] == alarm for one in entries)}
    if not active:
        return None
    reason, alarm = list(active.items())[-1]
    members = sorted(one.get("member", "an unknown member") for one in entries if one["alarm"] == alarm)
    return reason, f"etcd reports alarm {alarm} on {', '.join(members)}, {_EFFECTS[reason]}"


def is_corrupt(s: Situation) -> bool:
    return any(one.alarm == "CORRUPT" for one in s.observed.view.alarms)


def alarmed(planned: Plan, entries: Entries) -> Plan:
    """The same plan; a cluster that would be reported as Running is degraded."""
    found = worst(entries)
    if found is None or planned.phase is not Phase.RUNNING:
        return planned
    if planned.reason in ELECTION:  # the more urgent news
        return replace(planned, phase=Phase.DEGRADED)
    message = f"{found[1]} {planned.message}"
    requeue = min(planned.requeue, PATIENT)  # no event comes when an alarm ends
    return replace(planned, phase=Phase.DEGRADED, reason=found[0], message=message, requeue=requeue)
