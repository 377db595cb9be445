from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox import checks, cluster, layout
from sandbox.errors import SandboxError


@pytest.mark.parametrize(
    ("routes", "taken"),
    [
        (["default", "192.0.2.0/24"], None),
        (["default", "198.18.0.0/25"], "198.18.0.0/25"),
        (["198.0.0.0/8"], "198.0.0.0/8"),
        (["198.19.0.7"], "198.19.0.7"),
    ],
)
def test_route_that_overlaps_a_network_is_found(routes: list[str], taken: str | None) -> None:
    assert checks.overlapping(routes) == taken


def test_missing_root_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SandboxError, match="must be run as root"):
        checks.root()


def test_full_disk_is_reported_with_the_space_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(layout, "STATE", tmp_path / "state")
    with pytest.raises(SandboxError, match=r"GiB are needed\. Free space"):
        checks.disk(state_needs=1 << 60)


def test_kernel_without_namespaces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_NAMESPACES", ("mnt", "nothing"))
    with pytest.raises(SandboxError, match="no nothing namespaces"):
        checks.kernel()


def test_missing_packages_are_named_where_there_is_no_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "PACKAGES", {"some-package": "/nowhere/program"})
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxError, match="some-package"):
        checks.packages()


@pytest.mark.parametrize("count", [0, 6])
def test_number_of_nodes_is_limited(count: int) -> None:
    with pytest.raises(SandboxError, match="1 to 5 nodes"):
        cluster.up(count)
