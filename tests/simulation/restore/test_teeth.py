"""The simulation finds bugs: every deliberate breakage is caught within the usual number of schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.backup import planner as backup_planner
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import effects
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import planner, previous
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.plan import Observation

from .. import role
from ..etcd import ViolationError
from .schedule import play_all
from .test_schedules import SEEDS

Patch = pytest.MonkeyPatch


def _always(module: Any, name: str, value: Any) -> Callable[[Patch], None]:
    """A function that always returns the same."""
    return lambda patch: patch.setattr(module, name, lambda *_, **__: value)


def _leaves_at_once(patch: Patch) -> None:
    deleted = planner._deleted
    patch.setattr(planner, "_deleted", lambda *arguments: replace(deleted(*arguments), action=None, finalized=True))


def _uses_volumes_of_running_members(patch: Patch) -> None:
    patch.setattr(Observation, "at_rest", Observation.held_by)


def _uses_any_claim(patch: Patch) -> None:
    patch.setattr(Observation, "is_own_claim", lambda *_: True)
    patch.setattr(effects, "is_of_same_owner", lambda *_: True)


def _starts_with_the_first_member(patch: Patch) -> None:
    jobs = planner._member_jobs
    patch.setattr(planner, "_member_jobs", lambda restore, size: jobs(restore, size)[:1])
    restoring = planner._restoring

    def one(restore: Any, observed: Observation, before: dict[str, Any]) -> Plan:
        return restoring(restore, observed, {**before, "size": 1})

    patch.setattr(planner, "_restoring", one)


def _without(action: str) -> Callable[[Patch], None]:
    """An action that does nothing."""

    def breakage(patch: Patch) -> None:
        read = role.tasks
        patch.setattr(role, "tasks", lambda path: () if Path(path).stem == action else read(path))

    return breakage


BREAKAGES: dict[str, tuple[Callable[[Patch], None], str]] = {
    "the hold of another is taken over": (_always(planner, "_not_in_place", ""), "only its holder takes or releases"),
    "previous data counts as copied": (
        _always(previous, "_is_copied", True),
        "data is deleted only if a verified copy exists",
    ),
    "volumes are used while members run": (_uses_volumes_of_running_members, "no volume is changed while members run"),
    "a cluster starts before all data is there": (_starts_with_the_first_member, "a cluster starts only with"),
    "the PVC of another program is used": (
        _uses_any_claim,
        "data is deleted only if a verified copy exists elsewhere: theirs",
    ),
    "previous data is not put back": (
        lambda patch: patch.setattr(previous, "put_back", lambda *arguments: arguments[-1]),
        "everything reaches a terminal phase",
    ),
    "a deleted restore leaves at once": (_leaves_at_once, "no cluster stays held"),
    "a new cluster is not removed": (_without("remove_cluster"), "everything reaches a terminal phase"),
    "Jobs are not deleted": (_without("delete_jobs"), "no Job is left|everything reaches a terminal phase"),
    "Jobs of backups are not deleted": (
        lambda patch: patch.setattr(backup_planner, "_clean_up", lambda _backup, _observed, done: done),
        "no Job is left",
    ),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_breakage_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    breakage, what = BREAKAGES[name]
    breakage(monkeypatch)
    with pytest.raises(ViolationError, match=f"^({what})"):
        play_all(SEEDS)
