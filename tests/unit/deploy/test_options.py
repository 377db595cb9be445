"""What the CRD lets through in options.extra, on the real etcd of each minor version."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api import cluster as spec
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import member_config

from sandbox import layout, parts

from . import crd

EXTRA = crd.part("spec", "options", "extra")
OWN_FIELDS, KNOWN = (crd.names_in(rule["rule"]) for rule in EXTRA["x-kubernetes-validations"][:2])
ALLOWED = KNOWN - OWN_FIELDS
SINCE_36 = next(
    crd.names_in(rule["rule"])
    for rule in crd.part("spec")["x-kubernetes-validations"]
    if "3.6 or later" in rule["message"]
)
CASES = [
    case
    for case in crd.load(crd.CASES / "accepted.yml")["etcdops_accepted"]
    if "extra" in case["spec"].get("options", {})
]


def _allowed(minor: str) -> set[str]:
    return {
        name
        for name in ALLOWED
        if not (minor == "3.5" and name in SINCE_36) and not (minor == "3.7" and name.startswith("experimental-"))
    }


@pytest.fixture(params=layout.ETCD_VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def test_description_lists_the_allowed_options() -> None:
    headings = r"From 3\.6 on:|With 3\.5 and 3\.6, each after 'experimental-':"
    every, since, until = re.split(headings, EXTRA["description"])
    listed = [set(re.findall(r"[a-z]+(?:-[a-z]+)+|cors|metrics", text)) for text in (every, since, until)]
    experimental = {name for name in ALLOWED if name.startswith("experimental-")}
    assert listed[0] == ALLOWED - SINCE_36 - experimental
    assert listed[1] == SINCE_36
    assert {f"experimental-{name}" for name in listed[2]} == experimental


def test_every_option_has_a_check_of_its_value() -> None:
    rules = EXTRA["x-kubernetes-validations"][2:]
    checked = {name for rule in rules if "must be" in rule["message"] for name in crd.names_in(rule["rule"])}
    assert ALLOWED - checked == set()


def test_etcd_knows_every_allowed_option(version: str) -> None:
    text = subprocess.run([_etcd(version), "--help"], capture_output=True, text=True, check=True, timeout=10)
    flags = set(re.findall(r"^\s+--([a-z0-9-]+)", text.stdout + text.stderr, re.MULTILINE))
    assert _allowed(version.rpartition(".")[0]) | OWN_FIELDS <= flags


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_etcd_starts_with_the_allowed_options(case: dict[str, Any], tmp_path: Path) -> None:
    wanted = case["spec"].get("version") or case.get("base", {}).get("version", "3.6.16")
    version = next(v for v in layout.ETCD_VERSIONS if v.rpartition(".")[0] == wanted.rpartition(".")[0])
    metrics = _start(version, case["spec"]["options"], tmp_path)
    assert "etcd_server_has_leader 1" in metrics


def _etcd(version: str) -> str:
    path = parts.etcd_binary(version)
    if not path.exists():
        pytest.skip(f"etcd {version} is not built; `python -m sandbox prepare` builds it")
    return str(path)


def _start(version: str, options: dict[str, Any], folder: Path) -> str:
    """Start etcd with the file that the operator would write, but for its addresses; what its metrics say."""
    cluster = spec.Cluster("test", "default", "uid", 1, 1, version, tls=spec.TlsSpec("Disabled"), options=options)
    client, peer, metrics = (f"http://127.0.0.1:{port}" for port in _free_ports(3))
    local = {
        "name": "test",
        "data-dir": str(folder / "data"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"test={peer}",
        "listen-metrics-urls": metrics,
    }
    file, log = folder / "etcd.yaml", folder / "log"
    file.write_text(json.dumps(member_config.settings(cluster, version) | local))
    with log.open("w") as output, subprocess.Popen([_etcd(version), "--config-file", file], stderr=output) as process:
        try:
            return _metrics(metrics, process, log)
        finally:
            process.kill()


def _metrics(url: str, process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + 20
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/readyz", timeout=2)
            with urllib.request.urlopen(f"{url}/metrics", timeout=2) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    raise AssertionError(f"etcd isn't ready: {log.read_text()[-2000:]}")


def _free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports
