"""Every action has its task file, every task file its action, and task files use only fields that the action has."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from ansible_collections.etcdops.etcd.plugins.module_utils.backup import plan as backup
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import actions as cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Action, Ref
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import plan as restore
from ansible_collections.etcdops.etcd.plugins.module_utils.schedule import plan as schedule

ROLES = Path(__file__).parents[2] / "roles"
MODULES = {"etcdcluster": cluster, "etcdbackup": backup, "etcdrestore": restore, "etcdbackupschedule": schedule}


def _actions(module: ModuleType) -> dict[str, type[Action]]:
    """The actions that a module defines, by the names of their task files."""
    own = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
    return {one.name.fget(object.__new__(one)): one for one in own if issubclass(one, Action)}  # type: ignore[attr-defined]


ACTIONS = [(role, name, kind) for role, module in MODULES.items() for name, kind in _actions(module).items()]


def _text(role: str, path: Path) -> str:
    """A task file with the files that it includes."""
    text = path.read_text()
    included = [task.get("ansible.builtin.include_tasks") for task in yaml.safe_load(text)]
    return text + "".join(_text(role, ROLES / role / "tasks" / name) for name in included if name)


def test_every_action_is_known() -> None:
    """The other tests would pass if none were; and none is defined elsewhere."""
    found = {kind for *_, kind in ACTIONS}
    assert len(found) == len(ACTIONS) > 20
    assert {one for one in Action.__subclasses__() if "ansible_collections" in one.__module__} == found
    assert all(is_dataclass(kind) for kind in found)


@pytest.mark.parametrize("role", MODULES)
def test_every_action_has_its_task_file_and_every_task_file_its_action(role: str) -> None:
    files = {path.stem for path in (ROLES / role / "tasks/actions").iterdir()}
    assert files == set(_actions(MODULES[role]))


@pytest.mark.parametrize(("role", "name", "kind"), ACTIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_task_file_uses_only_fields_of_its_action(role: str, name: str, kind: type[Action]) -> None:
    text = _text(role, ROLES / role / f"tasks/actions/{name}.yml")
    known = {each.name: each.type for each in fields(kind)}  # type: ignore[arg-type]
    used = re.findall(r"_plan\.action\.(\w+)(?:\.(\w+))?( \| default)?", text)
    optional = {field for field, _, default in used if default}  # in a file that several actions include
    unknown = {field for field, *_ in used} - set(known) - optional
    assert not unknown, f"{name}.yml uses {', '.join(sorted(unknown))}, which {kind.__name__} does not have"
    for field, part, _ in used:
        if part:
            assert known[field] == "Ref"
            assert part in {each.name for each in fields(Ref)}


@pytest.mark.parametrize(("role", "name", "kind"), ACTIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_task_file_uses_every_field_of_its_action(role: str, name: str, kind: type[Action]) -> None:
    """A field that no task reads would be an effect that is never made."""
    text = _text(role, ROLES / role / f"tasks/actions/{name}.yml")
    unused = {each.name for each in fields(kind)} - set(re.findall(rf"{role}_plan\.action\.(\w+)", text))  # type: ignore[arg-type]
    assert not unused


@pytest.mark.parametrize("role", MODULES)
def test_task_files_read_the_plan_of_their_own_role(role: str) -> None:
    for path in (ROLES / role / "tasks").rglob("*.yml"):
        plans = set(re.findall(r"(\w+)_plan\.(?:action|finalized|requeue)", path.read_text()))
        assert plans <= {role}, path
