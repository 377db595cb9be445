"""Runs plays as ansible-operator does, and compares the results without what differs from run to run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .warm import REPOSITORY, Warm

# As in the image.
SETTINGS = {
    "ANSIBLE_ACTION_PLUGINS": str(REPOSITORY / "warm_runner/action"),
    "ANSIBLE_GATHERING": "explicit",
    "ANSIBLE_INVENTORY_ENABLED": "ini",
    "ANSIBLE_LOCALHOST_WARNING": "false",
    "ANSIBLE_NOCOLOR": "true",
    "ANSIBLE_PIPELINING": "true",
}
_CHANGING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # UUIDs
    r"|[0-9a-f]{32}"  # the playbook that ansible-runner makes of a role
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(\+00:00)?"
    r"|\d+\.\d{3,}"
    r"|Paused for [\d.]+"
)


@dataclass(frozen=True)
class Outcome:
    code: int
    output: str
    files: set[str]
    events: list[dict[str, Any]]

    def results(self) -> dict[str, Any]:
        """By task."""
        return {
            event["event_data"]["task"]: event["event_data"]["res"]
            for event in self.events
            if event["event"] in ("runner_on_ok", "runner_on_failed")
        }


def make_role(folder: Path, tasks: str) -> Path:
    (folder / "tasks").mkdir(parents=True)
    (folder / "tasks/main.yml").write_text(tasks)
    return folder


def run_role(warm: Warm, folder: Path, role: Path, *options: str, **env: str) -> Outcome:
    """As internal/ansible/runner of ansible-operator does it."""
    return run_role_with({}, warm, folder, role, *options, **env)


def run_role_with(
    envvars: Mapping[str, str], warm: Warm, folder: Path, role: Path, *options: str, **env: str
) -> Outcome:
    """The same, with an environment for the play only."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("env", "inventory", "project"):
        (folder / name).mkdir(parents=True)
    meta = {
        "ansible_operator_meta": {"name": "example", "namespace": "default"},
        "size": {"__ansible_unsafe": "{{ 1 }}"},
    }
    (folder / "env/envvars").write_text(json.dumps({"KUBECONFIG": "/nowhere", **envvars}))
    (folder / "env/extravars").write_text(json.dumps(meta))
    (folder / "env/settings").write_text(json.dumps({"runner_http_url": "/nowhere", "runner_http_path": "/x"}))
    hosts = "localhost ansible_connection=local ansible_python_interpreter={{ansible_playbook_python}}"
    (folder / "inventory/hosts").write_text(hosts)
    words = ["--rotate-artifacts", "3", "--role", role.name, "--roles-path", f"{role.parent}/", "--hosts", "localhost"]
    command = ["ansible-runner", "run", str(folder), *words, "-i", "7", "--role-skip-facts", *options]
    done = warm.run(*command, env=env)
    artifacts = folder / "artifacts/7"
    events = [json.loads(path.read_text()) for path in (artifacts / "job_events").iterdir()]
    events.sort(key=lambda event: int(event["counter"]))
    files = {_constant(str(path.relative_to(folder))) for path in folder.rglob("*")}
    return Outcome(done.returncode, _constant(done.stdout + done.stderr), files, [_stripped(event) for event in events])


def _constant(text: str) -> str:
    return _CHANGING.sub("~", text)


def _stripped(event: Any) -> Any:
    if isinstance(event, dict):
        return {key: _stripped(value) for key, value in event.items() if key not in ("pid", "duration", "delta")}
    if isinstance(event, list):
        return [_stripped(value) for value in event]
    return _constant(event) if isinstance(event, str) else event
