"""Every fault makes the node NotReady, and its end makes the node and its pods healthy again."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from sandbox import cluster, faults, layout
from sandbox.errors import SandboxError

from .kube import Namespace, eventually

NODE = "node-2"


def _is_ready(name: str) -> bool:
    return cluster.node_is_ready(json.loads(cluster.kubectl("get", "node", name, "--output=json")))


def _healthy_members(etcd: Namespace) -> int:
    """How many members answer linearizable reads."""
    return sum(_is_healthy(pod) for pod in etcd.get("pods", "--selector=app=etcd")["items"])


def _is_healthy(pod: dict[str, Any]) -> bool:
    try:
        with urllib.request.urlopen(f"http://{pod['status'].get('podIP')}:2379/health", timeout=2) as answer:
            return bool(json.load(answer)["health"] == "true")
    except OSError:
        return False


@pytest.mark.parametrize(
    ("begin", "end", "state"), [("off", "on", "off"), ("freeze", "thaw", "frozen"), ("cut", "heal", "cut")]
)
def test_fault_is_observed_and_ends(etcd: Namespace, begin: str, end: str, state: str) -> None:
    node = next(node for node in layout.nodes(3) if node.name == NODE)
    assert _is_ready(NODE)
    faults.ACTIONS[begin](NODE)
    try:
        assert cluster.host_state(node) == state
        eventually(lambda: not _is_ready(NODE), timeout=30)
        assert _is_ready("node-1")
        assert _is_ready("node-3")
        assert _healthy_members(etcd) == 2  # the others still reach each other
    finally:
        faults.ACTIONS[end](NODE)
    assert cluster.host_state(node) == "running"
    eventually(lambda: _is_ready(NODE), timeout=60)
    eventually(lambda: _healthy_members(etcd) == 3, timeout=90)


@pytest.mark.usefixtures("up")
def test_unknown_node_is_reported() -> None:
    with pytest.raises(SandboxError, match="There is no node node-9; the nodes are node-1, node-2, node-3"):
        faults.off("node-9")
