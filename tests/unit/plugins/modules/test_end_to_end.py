"""Through Ansible itself: the modules are found, packed with what they import, and run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import layout

from ..etcds import HOST, Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(layout.ETCD_VERSIONS[-1], tmp_path_factory.mktemp("end-to-end"))
    try:
        yield cluster.bootstrap(1)
    finally:
        cluster.end()


def _ansible(module: str, arguments: dict[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/root"),
        "ANSIBLE_COLLECTIONS_PATH": str(layout.REPOSITORY / ".build/collections"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "LC_ALL": "C.UTF-8",
    }
    command = [str(Path(sys.executable).with_name("ansible")), "localhost", "-m", f"etcdops.etcd.{module}"]
    return subprocess.run(
        [*command, "-a", json.dumps(arguments), *options], env=environment, capture_output=True, text=True, check=False
    )


def test_modules_run_through_ansible(cluster: Cluster) -> None:
    wanted = {
        "endpoints": cluster.endpoints,
        "peer_urls": [f"http://{HOST}:1"],
        "username": "me",
        "password": "hush-hush",
    }
    checked = _ansible("etcd_member", wanted, "--check", "--diff", "-vvv")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "localhost | CHANGED" in checked.stdout
    assert f'+                "http://{HOST}:1"' in checked.stdout
    assert "hush-hush" not in checked.stdout + checked.stderr
    assert len(cluster.client().members().members) == 1

    added = _ansible("etcd_member", wanted)
    assert "localhost | CHANGED" in added.stdout
    info = _ansible("etcd_cluster_info", {"endpoints": cluster.endpoints})
    assert "localhost | SUCCESS" in info.stdout
    assert "it has not started yet" in info.stdout
