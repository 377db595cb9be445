"""The playbook for plain machines, on three of them: real etcds, and nothing of them replaced but who restarts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox import layout, parts

from ..plugins.etcds import Cluster

_, V36, V37 = layout.ETCD_VERSIONS
_HERE = Path(__file__).parent


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Cluster]:
    """Three members whose programs are in folders of their own, each under the test's service manager."""
    cluster = Cluster(V36, tmp_path / "cluster")
    cluster.folder.mkdir()
    try:
        cluster.bootstrap(3)
        for member in cluster.members:
            assert member.process
            arguments = member.process.args
            assert isinstance(arguments, list)
            (tmp_path / member.name).mkdir()
            command = [str(tmp_path / member.name / "etcd"), *arguments[1:]]
            _unit(tmp_path, member.name).write_text(json.dumps({"pid": member.process.pid, "command": command}))
        yield cluster
    finally:
        for member in cluster.members:
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(json.loads(_unit(tmp_path, member.name).read_text())["pid"], signal.SIGKILL)
        cluster.end()


def _unit(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _roll(folder: Path, cluster: Cluster, version: str) -> subprocess.CompletedProcess[str]:
    hosts = {
        f"machine-{member.name}": {
            "etcd_name": member.name,
            "etcd_bin": str(folder / member.name),
            "etcd_service": str(_unit(folder, member.name)),
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
        }
        for member in cluster.members
    }
    inventory = folder / "inventory.json"
    inventory.write_text(json.dumps({"etcd": {"hosts": hosts}}))
    settings = {
        "etcd_version": version,
        "etcd_programs": str(parts.etcd_binary(version).parent),
        "etcd_endpoints": cluster.endpoints,
        "etcd_snapshot_dest": str(folder / "before.db"),
    }
    environment = os.environ | {
        "ANSIBLE_COLLECTIONS_PATH": str(layout.REPOSITORY / ".build/collections"),
        "ANSIBLE_LIBRARY": str(_HERE / "library"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "LC_ALL": "C.UTF-8",
    }
    command = [str(Path(sys.executable).with_name("ansible-playbook")), f"--inventory={inventory}"]
    return subprocess.run(
        [*command, f"--extra-vars={json.dumps(settings)}", "etcdops.etcd.etcd_upgrade"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_machines_are_upgraded_one_after_another(machines: Cluster, tmp_path: Path) -> None:
    machines.client().put("key", "value")
    led = machines.leader().name
    done = _roll(tmp_path, machines, V37)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [machines.client(member).status().version for member in machines.members] == [V37] * 3
    assert machines.client().get("key") == b"value"
    assert (tmp_path / "before.db").stat().st_size > 0
    restarted = [line for line in done.stdout.splitlines() if line.startswith("changed: [machine-")]
    assert led in restarted[-1]  # the leader was restarted last

    again = _roll(tmp_path, machines, V37)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "changed=0" in again.stdout
    assert "changed=1" not in again.stdout
