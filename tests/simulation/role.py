"""Runs the task files of a role, so that their order and conditions are simulated too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import yaml
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan

_ROLES = Path(__file__).parents[2] / "roles"
_KEYWORDS = {"name", "register", "when"}
_JINJA = jinja2.Environment(autoescape=False)  # noqa: S701  for expressions only

Values = dict[str, Any]
Module = Callable[[str, Values], Values]


@dataclass(frozen=True)
class Task:
    module: str
    arguments: dict[str, Callable[..., Any]]
    include: tuple[Task, ...]
    when: Callable[..., Any]
    register: str


def run(plan: Plan, module: Module, role: str = "etcdcluster") -> None:
    """Run the tasks of a plan's action; `module` is called for each task."""
    result = plan.as_result()
    values = {f"{role}_plan": result, "ansible_operator_meta": {"namespace": "", "name": ""}}
    _run(tasks(_ROLES / role / f"tasks/actions/{result['action']['name']}.yml"), values, module)


def _run(found: tuple[Task, ...], values: Values, module: Module) -> None:
    for task in found:
        result: Values = {"changed": False, "skipped": True}
        if task.when(values):
            _run(task.include, values, module)
            arguments = {name: argument(values) for name, argument in task.arguments.items()}
            result = module(task.module, arguments) if task.module else {}
        if task.register:
            values[task.register] = result


@cache
def tasks(path: Path) -> tuple[Task, ...]:
    return tuple(_read(path))


def _read(path: Path) -> Iterator[Task]:
    for task in yaml.safe_load(path.read_text()):
        (action,) = set(task) - _KEYWORDS
        when = _JINJA.compile_expression(task.get("when", "true"), undefined_to_none=False)
        register = task.get("register", "")
        if action == "ansible.builtin.include_tasks":
            yield Task("", {}, tasks(path.parents[1] / task[action]), when, register)
        else:
            arguments = {name: _argument(value) for name, value in task[action].items()}
            yield Task(action.rpartition(".")[2], arguments, (), when, register)


def _argument(value: Any) -> Callable[..., Any]:
    if isinstance(value, list):
        found = [_argument(each) for each in value]
        return lambda values: [each(values) for each in found]
    if isinstance(value, str) and value.startswith("{{"):
        return _JINJA.compile_expression(value.strip("{} "), undefined_to_none=False)
    return lambda _: value
