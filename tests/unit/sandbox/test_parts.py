from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import layout, parts
from sandbox.errors import SandboxError


def _go(folder: Path, script: str) -> None:
    """A `go` of ours on PATH."""
    program = folder / "go"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("ETCDOPS_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_the_key_moves_with_sources_flags_and_go() -> None:
    part = parts.PARTS[0]
    keys = {
        parts.key(part, "1.26.0"),
        parts.key(part, "1.26.1"),
        parts.key(parts.PARTS[1], "1.26.0"),
        parts.key(parts.Part(part.name, variables={"a": "b"}), "1.26.0"),
    }
    assert len(keys) == 4


def test_the_sources_hold_the_versions_that_the_layout_names() -> None:
    assert f"k8s.io/kubernetes {layout.KUBERNETES_VERSION}" in (parts.PARTS[0].source / "go.mod").read_text()
    for version in layout.ETCD_VERSIONS:
        source = next(part.source for part in parts.PARTS if part.name == f"etcd-{version[:3]}")
        assert f"go.etcd.io/etcd/server/v3 v{version}" in (source / "go.mod").read_text()


def test_a_failed_build_leaves_no_part_and_says_why(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _go(path, 'case "$1" in env) echo go9.9.9;; *) echo "no space left on device" >&2; exit 1;; esac')
    monkeypatch.setattr(parts, "PARTS", (parts.Part("coredns"),))
    with pytest.raises(SandboxError, match="no space left on device"):
        parts.build_all()
    assert not parts.binary("coredns", "coredns").parent.exists()


def test_an_interrupted_build_is_cleared_away_and_a_build_is_made_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = path / "builds"
    _go(
        path,
        f'case "$1" in env) echo go9.9.9;; *) echo built >> {log}; '
        'while [ "$1" != -o ]; do shift; done; echo program > "$2/coredns";; esac',
    )
    monkeypatch.setattr(parts, "PARTS", (parts.Part("coredns"),))
    leftover = path / "cache/parts/.coredns-interrupted"
    leftover.mkdir(parents=True)
    parts.build_all()
    parts.build_all()
    assert log.read_text() == "built\n"
    assert not leftover.exists()
    assert parts.binary("coredns", "coredns").read_text() == "program\n"


def test_two_builds_at_once_build_once(path: Path) -> None:
    log = path / "builds"
    _go(
        path,
        f'case "$1" in env) echo go9.9.9;; *) echo built >> {log}; sleep 0.5; '
        'while [ "$1" != -o ]; do shift; done; echo program > "$2/coredns";; esac',
    )
    script = "from sandbox import parts; parts.PARTS = (parts.Part('coredns'),); parts.build_all()"
    both = [subprocess.Popen([sys.executable, "-c", script], cwd=layout.REPOSITORY) for _ in range(2)]
    assert [process.wait(30) for process in both] == [0, 0]
    assert log.read_text() == "built\n"
