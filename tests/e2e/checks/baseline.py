"""What a scenario keeps of a cluster between two commands: its members, and which of them lost their data since."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from sandbox import layout


@dataclass(frozen=True)
class Baseline:
    cluster_id: str = ""
    members: dict[str, str] = field(default_factory=dict)  # name → member ID
    lost: tuple[str, ...] = ()  # names of members whose data is gone
    uncertain: tuple[str, ...] = ()  # names of members that may or may not keep their data
    since: str = ""  # events from this time on belong to the next check


def load(uid: str) -> Baseline:
    """By the EtcdCluster's uid: a later cluster of the same name has its own."""
    try:
        known = json.loads(_path(uid).read_text())
    except FileNotFoundError:
        return Baseline()
    return Baseline(**known | {"lost": tuple(known["lost"]), "uncertain": tuple(known["uncertain"])})


def save(uid: str, baseline: Baseline) -> None:
    _path(uid).parent.mkdir(parents=True, exist_ok=True)
    _path(uid).write_text(json.dumps(asdict(baseline)))


def lost(uid: str, names: list[str]) -> None:
    """Record members that must come back with new IDs."""
    before = load(uid)
    save(uid, replace(before, lost=tuple({*before.lost, *names})))


def uncertain(uid: str, names: list[str]) -> None:
    """Record members that may come back with new or old IDs."""
    before = load(uid)
    save(uid, replace(before, uncertain=tuple({*before.uncertain, *names})))


def _path(uid: str) -> Path:
    return layout.REPOSITORY / ".build/baselines" / f"{uid}.json"
