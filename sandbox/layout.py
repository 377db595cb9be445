"""Names, addresses and paths of the sandbox: all that follows from its number and from the number of nodes."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

MIN_NODES, MAX_NODES = 1, 5
KUBERNETES_VERSION = "v1.34.4"
ETCD_VERSIONS = ("3.5.35", "3.6.16", "3.7.3")
ETCD_REPOSITORY = "gcr.io/etcd-development/etcd"
PAUSE_IMAGE = "sandbox.local/pause:1"
S3_IMAGE = "sandbox.local/versitygw:1"


@dataclass(frozen=True)
class Networks:
    hosts: IPv4Network
    pods: IPv4Network
    pods_of_node: int  # the prefix length of each node's share
    services: IPv4Network

    @property
    def all(self) -> tuple[IPv4Network, ...]:
        return (self.hosts, self.pods, self.services)


# Two sandboxes may run side by side: ETCDOPS_SANDBOX=2 names the second one. Their networks are reserved for tests and
# documentation (RFC 2544, RFC 5737), so they clash with no real ones.
_NETWORKS = {
    "1": Networks(IPv4Network("198.18.0.0/24"), IPv4Network("198.18.128.0/17"), 24, IPv4Network("198.19.0.0/16")),
    "2": Networks(IPv4Network("203.0.113.0/27"), IPv4Network("198.51.100.0/24"), 27, IPv4Network("203.0.113.128/25")),
}
NUMBERS = tuple(_NETWORKS)
NUMBER = os.environ.get("ETCDOPS_SANDBOX") or "1"
if NUMBER not in NUMBERS:
    sys.exit(f"sandbox: ETCDOPS_SANDBOX is {NUMBER!r}; it must be one of {', '.join(NUMBERS)}.")


def networks(number: str = NUMBER) -> Networks:
    return _NETWORKS[number]


HOST_NETWORK = networks().hosts
POD_NETWORK = networks().pods
SERVICE_NETWORK = networks().services
UPLINK_ADDRESS = HOST_NETWORK[1]
DNS_ADDRESS = SERVICE_NETWORK[10]
KUBERNETES_SERVICE_ADDRESS = SERVICE_NETWORK[1]
CLUSTER_DOMAIN = "cluster.local"
API_PORT = 6443

_UPLINKS = "etcdops"
UPLINK = f"{_UPLINKS}{int(NUMBER) - 1}"  # the only interface the machine itself gets
SWITCH = "switch"
CONTROL_PLANE = "control-plane"


def cgroup(number: str = NUMBER) -> str:
    return "etcdops" if number == "1" else f"etcdops-{number}"


def state(number: str = NUMBER) -> Path:
    return Path("/var/lib/etcdops-sandbox" if number == "1" else f"/var/lib/etcdops-sandbox-{number}")


CGROUP = cgroup()
STATE = state()
# Where the kubelet and containerd write whatever their configuration says: each host has its own, in memory.
PRIVATE = (Path("/var/lib/kubelet"), Path("/var/lib/cni"))
REPOSITORY = Path(__file__).resolve().parent.parent


def cache_dir() -> Path:
    """The folder for builds; `down` does not remove it."""
    if own := os.environ.get("ETCDOPS_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "etcdops"


@dataclass(frozen=True)
class Host:
    """A machine of the sandbox: the control plane or a node."""

    name: str
    address: IPv4Address
    pods: IPv4Network | None = None  # nodes only
    zone: str = ""

    @property
    def dir(self) -> Path:
        """The folder that is the disk of the host."""
        return STATE / "hosts" / self.name

    @property
    def logs(self) -> Path:
        return STATE / "logs" / self.name

    @property
    def is_node(self) -> bool:
        return self.pods is not None


def control_plane() -> Host:
    return Host(CONTROL_PLANE, HOST_NETWORK[10])


def node(number: int) -> Host:
    pods = list(POD_NETWORK.subnets(new_prefix=networks().pods_of_node))[number]
    return Host(f"node-{number}", HOST_NETWORK[10 + number], pods, zone=f"zone-{number}")


def nodes(count: int) -> list[Host]:
    return [node(number) for number in range(1, count + 1)]


def hosts(count: int) -> list[Host]:
    return [control_plane(), *nodes(count)]


def kubeconfig() -> Path:
    """The administrator's kubeconfig."""
    return STATE / "kubeconfig"


def lock() -> Path:
    """Held while the sandbox is brought up or down."""
    return cache_dir() / ("sandbox.lock" if NUMBER == "1" else f"sandbox-{NUMBER}.lock")


def api_url() -> str:
    return f"https://{control_plane().address}:{API_PORT}"


def etcd_image(version: str) -> str:
    return f"{ETCD_REPOSITORY}:v{version}"
