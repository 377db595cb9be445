"""Fault injection: power a node off and on, freeze and thaw it, disconnect and reconnect its network."""

from __future__ import annotations

import shutil

from . import cgroups, checks, cluster, host, layout, network
from .errors import SandboxError
from .layout import Host


def find_node(name: str) -> Host:
    checks.root()
    count = cluster.existing().nodes
    for node in layout.nodes(count):
        if node.name == name:
            return node
    names = ", ".join(node.name for node in layout.nodes(count))
    raise SandboxError(f"There is no node {name}; the nodes are {names}.")


def _running_node(name: str) -> Host:
    node = find_node(name)
    if host.find(name) is None:
        raise SandboxError(f"{name} is powered off. Power it on first (python -m sandbox node on {name}).")
    return node


def off(name: str) -> None:
    """Kill all processes of a node at once; its disk is kept."""
    find_node(name)
    host.stop(name)
    cgroups.remove(name)


def on(name: str) -> None:
    """Power a node on: the kubelet's state and the volumes are unchanged, the containers are gone."""
    node = find_node(name)
    if host.find(name):
        return
    there = cluster.existing()
    # containerd starts slowly if its root exists and its runtime state does not, so it gets a new root.
    shutil.rmtree(node.dir / "containerd", ignore_errors=True)
    cluster.start_host(node, count=there.nodes, archives=there.archives)


def freeze(name: str) -> None:
    """Freeze all processes of a node."""
    cgroups.freeze(_running_node(name).name)


def thaw(name: str) -> None:
    cgroups.thaw(_running_node(name).name)


def cut(name: str) -> None:
    """Disconnect a node from the other nodes and from the control plane."""
    network.cut(_running_node(name).name)


def heal(name: str) -> None:
    network.heal(_running_node(name).name)


ACTIONS = {"off": off, "on": on, "freeze": freeze, "thaw": thaw, "cut": cut, "heal": heal}
