"""The network of the sandbox: a bridge in its own namespace, a veth pair to each host, and one to the machine."""

from __future__ import annotations

import json

from . import host as hosts
from . import layout
from .layout import Host
from .run import run


def _ip(pid: int | None, *arguments: str) -> str:
    """`ip`, in the namespace of `pid` or on the machine itself."""
    where = ["nsenter", f"--target={pid}", "--net", "--"] if pid else []
    return run([*where, "ip", *arguments])


def wire_switch(pid: int, nodes: list[Host]) -> None:
    """Create the bridge and connect the machine."""
    _ip(pid, "link", "add", "bridge", "type", "bridge")
    _ip(pid, "link", "set", "bridge", "up")
    _ip(None, "link", "add", layout.UPLINK, "type", "veth", "peer", "name", "uplink", "netns", str(pid))
    _ip(pid, "link", "set", "uplink", "master", "bridge", "up")
    _ip(None, "address", "add", f"{layout.UPLINK_ADDRESS}/{layout.HOST_NETWORK.prefixlen}", "dev", layout.UPLINK)
    _ip(None, "link", "set", layout.UPLINK, "up")
    for node in nodes:
        _ip(None, "route", "add", str(node.pods), "via", str(node.address))
    _ip(None, "route", "add", str(layout.SERVICE_NETWORK), "via", str(layout.control_plane().address))


def wire_host(pid: int, host: Host, nodes: list[Host]) -> None:
    """Connect a host to the bridge and add routes to the pods of the other nodes."""
    switch = hosts.find(layout.SWITCH)
    assert switch is not None
    _ip(pid, "link", "add", "eth0", "type", "veth", "peer", "name", host.name, "netns", str(switch))
    _ip(switch, "link", "set", host.name, "master", "bridge", "up")
    _ip(pid, "link", "set", "lo", "up")
    _ip(pid, "address", "add", f"{host.address}/{layout.HOST_NETWORK.prefixlen}", "dev", "eth0")
    _ip(pid, "link", "set", "eth0", "up")
    for node in nodes:
        if node != host:
            _ip(pid, "route", "add", str(node.pods), "via", str(node.address))
    # Service addresses are translated before packets leave; the route only lets local programs send to them.
    _ip(pid, "route", "add", str(layout.SERVICE_NETWORK), "dev", "eth0")
    settings = ["net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"]
    run(["nsenter", f"--target={pid}", "--net", "--", "sysctl", "-q", "-w", *settings])


def cut(name: str) -> None:
    """Disconnect a host from the bridge; its own link stays up, as behind a broken switch."""
    _ip(hosts.find(layout.SWITCH), "link", "set", name, "nomaster")


def heal(name: str) -> None:
    _ip(hosts.find(layout.SWITCH), "link", "set", name, "master", "bridge")


def is_cut(name: str) -> bool:
    links = json.loads(_ip(hosts.find(layout.SWITCH), "-json", "link"))
    return any(link["ifname"] == name and "master" not in link for link in links)
