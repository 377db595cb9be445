"""Profile of a settled reconcile: python -m benchmarks.profile

Runs the role as ansible-operator does, against the sandbox but without a pod: with the `ansible-runner` that is first
on PATH and the settings of the Dockerfile. The profile includes neither the time of ansible-operator itself nor sending
events to it.
"""

from __future__ import annotations

import io
import json
import os
import pstats
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import KubeError

from sandbox import layout
from sandbox.errors import SandboxError

from . import clusters
from .kube import api, apply, namespace, wait_for_all

_NAME = "bench"
_IMPORTS = {
    "ansible-runner": "ansible_runner.__main__",
    "ansible-playbook": "ansible.cli.playbook",
    "module etcdcluster_plan": "ansible_collections.etcdops.etcd.plugins.modules.etcdcluster_plan",
}
# Imports are listed separately, so they are not profiled here. yaml parses the kubeconfig, which a pod does not need.
_PROFILED = f"""
import cProfile, sys, yaml
from {_IMPORTS["module etcdcluster_plan"]} import main
profile = cProfile.Profile()
try:
    profile.runcall(main)
finally:
    profile.dump_stats(sys.argv[2])
"""
_SETTING = re.compile(r"\b(ANSIBLE_\w+)=([^\s\\]+)")


@dataclass(frozen=True)
class Part:
    """A section of the run."""

    what: str
    seconds: float


@dataclass(frozen=True)
class Run:
    wall_s: float
    cpu_s: float  # of child processes that have exited
    parts: tuple[Part, ...]


def main() -> None:
    try:
        with namespace(f"{clusters.PREFIX}profile") as where:
            apply(clusters.cluster(where, _NAME))
            wait_for_all(where, [_NAME], "settled", clusters.is_settled)
            declared = api().get("EtcdCluster", where, _NAME) or {}
            _print_run(min((run(declared, _environment()) for _ in range(4)), key=lambda run: run.wall_s))
            _print_imports()
            _print_calls(where)
    except (SandboxError, KubeError) as error:
        sys.exit(f"profile: {error}")


def settings(dockerfile: str) -> dict[str, str]:
    """Ansible's settings in the image, except paths, which are valid only in the image."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    return {name: value for name, value in _SETTING.findall("\n".join(lines)) if not value.startswith("/")}


def parameters(declared: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that ansible-operator passes to a role."""
    meta = declared["metadata"]
    return {
        **declared["spec"],
        "ansible_operator_meta": {"namespace": meta["namespace"], "name": meta["name"]},
        "_etcdops_dev_etcdcluster": declared,
        "_etcdops_dev_etcdcluster_spec": declared["spec"],
    }


def timeline(started: float, ended: float, events: list[dict[str, Any]]) -> tuple[Part, ...]:
    """Sections of a run between two timestamps, from the events that ansible-runner wrote."""
    marks = [(started, "start ansible-runner and ansible-playbook")]
    for event in sorted(events, key=lambda event: str(event["created"])):
        when = datetime.fromisoformat(event["created"]).timestamp()
        if event["event"] == "playbook_on_start":
            marks.append((when, "read the play"))
        elif event["event"] == "playbook_on_task_start":
            marks.append((when, f"task: {event['event_data'].get('task', '?')}"))
        elif event["event"] == "playbook_on_stats":
            marks.append((when, "exit of both programs"))
    ends = [when for when, _ in marks[1:]] + [ended]
    return tuple(Part(what, end - when) for (when, what), end in zip(marks, ends, strict=True))


def imports(text: str) -> Counter[str]:
    """Import time in microseconds by package, from the output of `python -X importtime`."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        times, _, name = line.removeprefix("import time:").rpartition("|")
        own = times.partition("|")[0].strip()
        if line.startswith("import time:") and own.isdigit():
            found[name.strip().partition(".")[0]] += int(own)
    return found


def _environment() -> dict[str, str]:
    own = {"KUBECONFIG": str(layout.kubeconfig())}
    return {**os.environ, **settings((layout.REPOSITORY / "Dockerfile").read_text()), **own}


def run(declared: Mapping[str, Any], environment: Mapping[str, str], events_socket: str = "") -> Run:
    """Run the role with the directory and arguments that ansible-operator uses; events are sent to the socket."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("env", "project", "inventory"):
            (folder / part).mkdir()
        hosts = "localhost ansible_connection=local ansible_python_interpreter={{ansible_playbook_python}}"
        (folder / "inventory/hosts").write_text(hosts)
        (folder / "env/extravars").write_text(json.dumps(parameters(declared)))
        if events_socket:
            target = {"runner_http_url": events_socket, "runner_http_path": "/events"}
            (folder / "env/settings").write_text(json.dumps(target))
        roles = f"{layout.REPOSITORY}/roles/"
        command = ["ansible-runner", "run", name, "--rotate-artifacts", "3", "--role", "etcdcluster"]
        command += ["--roles-path", roles, "--hosts", "localhost", "-i", "run", "--role-skip-facts"]
        before, started = _children_cpu(), time.time()
        done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False, timeout=120)
        ended, cpu = time.time(), _children_cpu() - before
        if done.returncode:
            raise SandboxError(f"ansible-runner failed ({done.returncode}): {(done.stdout + done.stderr)[-800:]}")
        events = [json.loads(path.read_text()) for path in (folder / "artifacts/run/job_events").glob("*.json")]
    return Run(ended - started, cpu, timeline(started, ended, events))


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _print_run(run: Run) -> None:
    print(f"Settled reconcile, fastest of four: {run.wall_s:.2f} s, {run.cpu_s:.2f} s of CPU time")
    print("(CPU time without that of the warm servers)")
    for part in run.parts:
        print(f"  {part.seconds:6.3f} s  {part.what}")


def _print_imports() -> None:
    print("\nImport time of a new Python process in ms, by package")
    for what, module in _IMPORTS.items():
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", f"import {module}"],
            text=True,
            capture_output=True,
            check=False,
            timeout=60,
        )
        if done.returncode:
            raise SandboxError(f"Cannot import {module}: {done.stderr[-400:]}")
        found = imports(done.stderr)
        most = "  ".join(f"{name} {spent / 1000:.0f}" for name, spent in found.most_common(7))
        print(f"  {found.total() / 1000:4.0f}  {what}: {most}")


def _print_calls(where: str) -> None:
    print("\nModule etcdcluster_plan: the 20 functions with the highest cumulative time")
    with tempfile.TemporaryDirectory() as folder:
        arguments, profile = Path(folder, "arguments.json"), Path(folder, "profile")
        arguments.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {"namespace": where, "name": _NAME}}))
        command = [sys.executable, "-c", _PROFILED, str(arguments), str(profile)]
        done = subprocess.run(command, env=_environment(), text=True, capture_output=True, check=False, timeout=60)
        if not profile.exists() or '"failed": true' in done.stdout:
            raise SandboxError(f"etcdcluster_plan failed: {(done.stdout + done.stderr)[-400:]}")
        page = io.StringIO()
        statistics = pstats.Stats(str(profile), stream=page).strip_dirs().sort_stats("cumulative")
        statistics.print_stats(20)
    lines = page.getvalue().splitlines()
    start = next(number for number, line in enumerate(lines) if "ncalls" in line)
    print("\n".join(line for line in lines[start:] if line))


if __name__ == "__main__":
    main()
