"""Collect logs, events and objects in one folder, for debugging a failed test."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from . import cluster, layout
from .errors import SandboxError

_QUERIES = {
    "events.txt": ("get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"),
    "objects.txt": (
        "get",
        "nodes,pods,statefulsets,deployments,jobs,services,endpointslices,pvc,pv,pdb",
        "--all-namespaces",
        "--output=wide",
    ),
    "pods.txt": ("describe", "pods", "--all-namespaces"),
    "nodes.txt": ("describe", "nodes"),
}


def collect(folder: Path) -> None:
    """Copy the logs of every component and pod, the events and the objects into `folder`."""
    cluster.existing()
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(layout.STATE / "logs", folder / "hosts", dirs_exist_ok=True)
    for name, query in _QUERIES.items():
        (folder / name).write_text(_ask(*query))
    for namespace, pod in _pods():
        text = _ask("logs", f"--namespace={namespace}", pod, "--all-containers", "--prefix", "--tail=5000")
        previous = _ask("logs", f"--namespace={namespace}", pod, "--all-containers", "--prefix", "--previous")
        (folder / f"pod-{namespace}-{pod}.log").write_text(f"{text}\n--- before its last restart ---\n{previous}")


def _pods() -> list[tuple[str, str]]:
    try:
        pods = json.loads(cluster.kubectl("get", "pods", "--all-namespaces", "--output=json"))["items"]
    except SandboxError:
        return []
    return [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods]


def _ask(*query: str) -> str:
    """The output of kubectl, or its error: one failure must not prevent the rest."""
    try:
        return cluster.kubectl(*query, "--request-timeout=15s")
    except SandboxError as error:
        return f"{error}\n"
