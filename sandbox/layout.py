"""Names, addresses and paths of the sandbox."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

MIN_NODES, MAX_NODES = 1, 5
KUBERNETES_VERSION = "v1.34.4"
ETCD_VERSIONS = ("3.5.35", "3.6.16", "3.7.3")
ETCD_REPOSITORY = "gcr.io/etcd-development/etcd"
PAUSE_IMAGE = "sandbox.local/pause:1"
S3_IMAGE = "sandbox.local/versitygw:1"

# 198.18.0.0/15 is reserved for test networks (RFC 2544), so it does not overlap with a real network.
RANGE = IPv4Network("198.18.0.0/15")
HOST_NETWORK = IPv4Network("198.18.0.0/24")
POD_NETWORK = IPv4Network("198.18.128.0/17")
SERVICE_NETWORK = IPv4Network("198.19.0.0/16")
UPLINK_ADDRESS = IPv4Address("198.18.0.1")
DNS_ADDRESS = IPv4Address("198.19.0.10")
KUBERNETES_SERVICE_ADDRESS = IPv4Address("198.19.0.1")
CLUSTER_DOMAIN = "cluster.local"
API_PORT = 6443

UPLINK = "etcdops0"  # the only interface on the machine itself
SWITCH = "switch"
CONTROL_PLANE = "control-plane"
CGROUP = "etcdops"

STATE = Path("/var/lib/etcdops-sandbox")
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
    pods = list(POD_NETWORK.subnets(new_prefix=24))[number]
    return Host(f"node-{number}", HOST_NETWORK[10 + number], pods, zone=f"zone-{number}")


def nodes(count: int) -> list[Host]:
    return [node(number) for number in range(1, count + 1)]


def hosts(count: int) -> list[Host]:
    return [control_plane(), *nodes(count)]


def kubeconfig() -> Path:
    """The administrator's kubeconfig."""
    return STATE / "kubeconfig"


def api_url() -> str:
    return f"https://{control_plane().address}:{API_PORT}"


def etcd_image(version: str) -> str:
    return f"{ETCD_REPOSITORY}:v{version}"
