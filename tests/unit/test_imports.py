"""Imports point one way, etcd/ and snapshots/ work without Kubernetes, and what decides does no I/O."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "plugins/module_utils"
PACKAGE = "ansible_collections.etcdops.etcd.plugins.module_utils"
# Each may import itself and those before it.
ORDER = ("etcd", "snapshots", "kube", "api", "plan", "cluster", "backup", "restore", "schedule", "reconcile")
# The files that talk to the API server or to members. All others of these packages decide, and are pure.
WITH_IO = {
    "cluster": {"acting", "observe", "restart", "validation"},
    "backup": {"notify", "observe"},
    "restore": {"acting", "observe"},
    "schedule": {"observe"},
}


def _name(path: Path) -> str:
    """A file's module name below module_utils, such as cluster.planner."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _decides(name: str) -> bool:
    package, _, file = name.partition(".")
    return bool(file) and package in WITH_IO and file not in WITH_IO[package]


FILES = {_name(path): path for path in sorted(ROOT.rglob("*.py"))}
PURE = ["plan", *(name for name in FILES if _decides(name))]


@cache
def _imported(name: str) -> frozenset[str]:
    """The files of module_utils that a file imports."""
    return frozenset(_imports(name, ast.parse(FILES[name].read_text())))


def _imports(name: str, tree: ast.Module) -> Iterator[str]:
    package = name.split(".") if FILES[name].stem == "__init__" else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _resolved(alias.name.removeprefix(f"{PACKAGE}.") if PACKAGE in alias.name else "")
        elif isinstance(node, ast.ImportFrom):
            base = _base(package, node)
            for alias in node.names if base is not None else ():
                yield from _resolved(f"{base}.{alias.name}".strip("."))


def _base(package: list[str], node: ast.ImportFrom) -> str | None:
    """Where names are imported from, below module_utils; None when that is elsewhere."""
    if node.level:
        kept = package[: len(package) + 1 - node.level]
        return ".".join([*kept, *([node.module] if node.module else [])])
    module = node.module or ""
    return module.removeprefix(PACKAGE).strip(".") if module.startswith(PACKAGE) else None


def _resolved(name: str) -> Iterator[str]:
    """The file that a dotted name is, or is defined in."""
    if name in FILES:
        yield name
    elif name.rpartition(".")[0] in FILES:
        yield name.rpartition(".")[0]


def _reached(name: str) -> dict[str, str]:
    """Every file that a file imports, directly or through others, with the file that imports it."""
    found: dict[str, str] = {}
    open_files = [name]
    while open_files:
        current = open_files.pop()
        for imported in _imported(current) - set(found):
            found[imported] = current
            open_files.append(imported)
    return found


def test_imports_are_found() -> None:
    """The other tests would pass if none were."""
    assert {"etcd.view", "plan", "cluster.situation"} <= _imported("cluster.upgrade") | _imported("cluster.situation")
    assert "kube.client" in _imported("reconcile")
    assert "kube.client" in _reached("cluster.acting")
    assert {"cluster.planner", "cluster.status", "backup.planner", "restore.planner", "schedule.planner"} <= set(PURE)


@pytest.mark.parametrize("name", FILES)
def test_imports_point_one_way(name: str) -> None:
    if not name:
        return
    own = name.split(".", maxsplit=1)[0]
    assert own in ORDER, f"{name}: give {own} a place in ORDER"
    allowed = ORDER[: ORDER.index(own) + 1]
    wrong = sorted(imported for imported in _imported(name) if imported.split(".")[0] not in allowed)
    assert not wrong, f"{name} imports {', '.join(wrong)}; it may import {', '.join(allowed)}"


@pytest.mark.parametrize("name", PURE)
def test_files_that_decide_do_not_import_the_kubernetes_client(name: str) -> None:
    reached = _reached(name)
    path, current = [], "kube.client"
    while current in reached and current not in path:
        path.append(current)
        current = reached[current]
    assert not path, f"{name} imports kube.client: {' <- '.join([*path, current])}"


_WITHOUT_KUBERNETES = """
import importlib, importlib.abc, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "kubernetes":
            raise ImportError(f"{name} is not installed here")
        return None

sys.meta_path.insert(0, Refuse())
try:
    import kubernetes
except ImportError:
    pass
else:
    sys.exit("the refusal does not work")
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


@pytest.mark.parametrize("package", ["etcd", "snapshots"])
def test_package_is_usable_without_kubernetes(package: str) -> None:
    names = [f"{PACKAGE}.{name}" for name in FILES if name.split(".")[0] == package]
    assert len(names) > 5
    ran = subprocess.run(
        [sys.executable, "-c", _WITHOUT_KUBERNETES, *names],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT.parents[1],
        env={"PYTHONPATH": ".:.build/collections"},
    )
    assert ran.returncode == 0, ran.stderr
