"""What the status of an EtcdCluster remembers between reconciles: one codec, for reading and for writing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from ..kube.conditions import time_text

R = TypeVar("R")


@dataclass(frozen=True)
class Join:
    """A learner that is joining, or whose join failed."""

    member: str  # its ID, in hexadecimal
    since: datetime
    failed: bool = False
    generation: int = 0  # of the spec, when the join failed


@dataclass(frozen=True)
class Upgrade:
    """A change of version: in progress, or the last one that completed."""

    source: str
    to: str
    started: datetime
    snapshot: str = ""  # the EtcdBackup taken before it; "" for none
    log_ready: bool = False  # the members' logs hold nothing that the new version can't read
    completed: datetime | None = None
    tried: str = ""  # the target before the last correction of spec.version; "" when there was none

    @property
    def in_progress(self) -> bool:
        return self.completed is None

    def towards(self, version: str) -> Upgrade:
        """The same upgrade with this target; it remembers which one was given up."""
        return self if version == self.to else replace(self, to=version, tried=self.to)


@dataclass(frozen=True)
class Serving:
    """The operator that serves the cluster."""

    name: str
    since: datetime
    before: str = ""  # the operator that served it until then
    contested: bool = False  # both do


@dataclass(frozen=True)
class Memory:
    cluster_id: str | None = None  # since the first quorum
    phase: str = ""
    unhealthy_since: datetime | None = None  # degraded or not available
    degraded_since: datetime | None = None
    unavailable_since: datetime | None = None  # members answer, but not a healthy quorum
    unanswered_since: datetime | None = None  # no member answers
    join: Join | None = None
    upgrade: Upgrade | None = None
    serving: Serving | None = None


def recall(status: Mapping[str, Any]) -> Memory:
    """Read the memory from a status."""
    return Memory(
        cluster_id=status.get("clusterID"),
        phase=status.get("phase", ""),
        unhealthy_since=_since(status, {"Available": "True", "Degraded": "False"}),
        degraded_since=_since(status, {"Degraded": "False"}, only="True"),
        unavailable_since=_since(status, {"Available": "True"}, only="False"),
        unanswered_since=_since(status, {"Available": "True"}, only="Unknown"),
        join=_readable(_join, status.get("join")),
        upgrade=_readable(_upgrade, status.get("upgrade")),
        serving=_readable(_serving, status.get("operator")),
    )


def upgrade_record(upgrade: Upgrade | None) -> dict[str, Any]:
    """The status fields that remember an upgrade."""
    return {"upgrade": _encoded_upgrade(upgrade)} if upgrade else {}


def join_record(join: Join | None) -> dict[str, Any]:
    """The status fields that remember a join; None removes what was remembered."""
    return {"join": _encoded_join(join) if join else None}


def serving_record(serving: Serving | None) -> dict[str, Any]:
    """The status fields that remember who serves the cluster."""
    if serving is None:
        return {}
    stored = {"name": serving.name, "since": time_text(serving.since), "before": serving.before or None}
    return {"operator": {**stored, "contested": serving.contested or None}}


def _encoded_upgrade(upgrade: Upgrade) -> dict[str, Any]:
    return {
        "from": upgrade.source,
        "to": upgrade.to,
        "tried": upgrade.tried or None,
        "started": time_text(upgrade.started),
        "snapshot": upgrade.snapshot or None,
        "logReady": upgrade.log_ready or None,
        "completed": time_text(upgrade.completed) if upgrade.completed else None,
    }


def _readable(read: Callable[[Mapping[str, Any]], R], stored: Mapping[str, Any] | None) -> R | None:
    """What was stored; None when it can't be read: a damaged status must not block a cluster, nor its deletion."""
    if not stored:
        return None
    try:
        return read(stored)
    except (KeyError, TypeError, ValueError):
        return None


def _upgrade(stored: Mapping[str, Any]) -> Upgrade:
    completed = stored.get("completed")
    return Upgrade(
        source=stored["from"],
        to=stored["to"],
        started=datetime.fromisoformat(stored["started"]),
        tried=stored.get("tried") or "",
        snapshot=stored.get("snapshot") or "",
        log_ready=bool(stored.get("logReady")),
        completed=datetime.fromisoformat(completed) if completed else None,
    )


def _serving(stored: Mapping[str, Any]) -> Serving:
    since = datetime.fromisoformat(stored["since"])
    return Serving(stored["name"], since, stored.get("before") or "", bool(stored.get("contested")))


def _encoded_join(join: Join) -> dict[str, Any]:
    stored: dict[str, Any] = {"member": join.member, "since": time_text(join.since)}
    return stored | ({"failed": True, "generation": join.generation} if join.failed else {})


def _join(stored: Mapping[str, Any]) -> Join:
    since = datetime.fromisoformat(stored["since"])
    return Join(stored["member"], since, stored.get("failed", False), stored.get("generation", 0))


def _since(status: Mapping[str, Any], normal: Mapping[str, str], only: str = "") -> datetime | None:
    """Since when the first of these conditions is not normal (with `only`: has exactly this status)."""
    times = [
        each["lastTransitionTime"]
        for each in status.get("conditions", [])
        if each["type"] in normal and (each["status"] == only if only else each["status"] != normal[each["type"]])
    ]
    return datetime.fromisoformat(min(times)) if times else None
