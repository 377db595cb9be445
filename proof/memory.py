"""What a scenario remembers of a cluster between two commands: who the members were, and who was lost since."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from sandbox import layout


@dataclass(frozen=True)
class Memory:
    cluster_id: str = ""
    members: dict[str, str] = field(default_factory=dict)  # name → member ID
    lost: tuple[str, ...] = ()  # names of those whose data is gone
    uncertain: tuple[str, ...] = ()  # … of whom nobody knows whether enough is left
    since: str = ""  # events from this moment on belong to what comes


def recall(uid: str) -> Memory:
    """By the EtcdCluster's uid: another cluster of the same name is none of its business."""
    try:
        known = json.loads(_path(uid).read_text())
    except FileNotFoundError:
        return Memory()
    return Memory(**known | {"lost": tuple(known["lost"]), "uncertain": tuple(known["uncertain"])})


def remember(uid: str, memory: Memory) -> None:
    _path(uid).parent.mkdir(parents=True, exist_ok=True)
    _path(uid).write_text(json.dumps(asdict(memory)))


def lost(uid: str, names: list[str]) -> None:
    """These must come back as new members."""
    before = recall(uid)
    remember(uid, replace(before, lost=tuple({*before.lost, *names})))


def uncertain(uid: str, names: list[str]) -> None:
    """These may come back as new members or as the old ones."""
    remember(uid, replace(recall(uid), uncertain=tuple(names)))


def _path(uid: str) -> Path:
    return layout.REPOSITORY / ".build/proof" / f"{uid}.json"
