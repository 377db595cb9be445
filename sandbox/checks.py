"""Checks whether a sandbox can run on this machine. Each failure says what to do."""

from __future__ import annotations

import json
import os
import shutil
from ipaddress import IPv4Network, ip_network
from pathlib import Path

from . import layout
from .errors import SandboxError
from .run import run, say

_NAMESPACES = ("mnt", "net", "pid", "uts")
_GIB = 1 << 30
_STATE_NEEDS = 4 * _GIB
_BUILD_NEEDS = 12 * _GIB

# Debian package: one of its files.
PACKAGES = {
    "containerd": "/usr/bin/containerd",
    "runc": "/usr/sbin/runc",
    "containernetworking-plugins": "/usr/lib/cni/ptp",
    "iptables": "/usr/sbin/iptables",
    "iproute2": "/usr/bin/ip",
    "procps": "/usr/sbin/sysctl",
    "util-linux": "/usr/bin/nsenter",
    "conntrack": "/usr/sbin/conntrack",
    "gcc": "/usr/bin/gcc",
    "libc6-dev": "/usr/include/stdio.h",
}


def root() -> None:
    if os.geteuid() != 0:
        raise SandboxError("The sandbox creates namespaces and mounts, so it must be run as root (try sudo).")


def kernel() -> None:
    missing = [name for name in _NAMESPACES if not Path("/proc/self/ns", name).exists()]
    if missing:
        raise SandboxError(f"This kernel has no {', '.join(missing)} namespaces. Use a kernel that has them.")
    if "overlay" not in Path("/proc/filesystems").read_text() and shutil.which("modprobe"):
        run(["modprobe", "overlay"])


def disk(state_needs: int = _STATE_NEEDS, build_needs: int = _BUILD_NEEDS) -> None:
    """Check the free space for the running sandbox and, while the cache is empty, for the builds."""
    cache = layout.cache_dir()
    _room(layout.STATE, state_needs)
    _room(cache, state_needs if (cache / "parts").is_dir() else build_needs)


def _room(path: Path, needed: int) -> None:
    there = next(parent for parent in (path, *path.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    if free < needed:
        raise SandboxError(
            f"{path} has {free / _GIB:.1f} GiB free and {needed / _GIB:.0f} GiB are needed. Free space and try again."
        )


def network() -> None:
    """Check that the name of the interface and the addresses are free."""
    links = {link["ifname"] for link in json.loads(run(["ip", "-json", "link"]))}
    if layout.UPLINK in links:
        raise SandboxError(f"An interface {layout.UPLINK} exists already. Remove it (ip link delete {layout.UPLINK}).")
    routes = [route["dst"] for route in json.loads(run(["ip", "-json", "-4", "route"]))]
    if taken := overlapping(routes):
        raise SandboxError(f"This machine already has a route to {taken}, which overlaps a network of the sandbox.")


def overlapping(routes: list[str]) -> str | None:
    """The first route that overlaps a network of the sandbox."""
    for route in routes:
        if route == "default":
            continue
        target = ip_network(route, strict=False)
        if isinstance(target, IPv4Network) and any(target.overlaps(each) for each in layout.networks().all):
            return route
    return None


def packages() -> None:
    """Install the Debian packages that are missing."""
    install(sorted(package for package, program in PACKAGES.items() if not Path(program).exists()))


def install(names: list[str]) -> None:
    """Install these Debian packages. Without apt, raise an error that lists them."""
    if not names:
        return
    if shutil.which("apt-get") is None:
        raise SandboxError(f"There is no apt-get. Install the equivalent of these Debian packages: {' '.join(names)}.")
    say(f"installing Debian packages: {' '.join(names)}")
    # No service may start: the sandbox runs its own containerd.
    environment = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"]
    try:
        run(["apt-get", "update", "-q"], timeout=300)
        run([*environment, "apt-get", "install", "-y", "-q", "--no-install-recommends", *names], timeout=600)
    except SandboxError as error:
        raise SandboxError(f"Could not install {' '.join(names)}; install them by hand: {error}") from None
