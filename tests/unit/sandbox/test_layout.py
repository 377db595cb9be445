from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations
from pathlib import Path

import pytest

from sandbox import layout

# For benchmarks (RFC 2544) and for documentation (RFC 5737).
RESERVED = [IPv4Network(each) for each in ("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24")]


def test_hosts_have_addresses_and_pod_ranges_of_their_own() -> None:
    hosts = layout.hosts(layout.MAX_NODES)
    assert len({host.address for host in hosts}) == len(hosts)
    assert all(host.address in layout.HOST_NETWORK for host in hosts)
    ranges = [host.pods for host in hosts if host.pods]
    assert len(ranges) == layout.MAX_NODES
    assert not any(one.overlaps(other) for one, other in combinations(ranges, 2))
    assert all(pods.subnet_of(layout.POD_NETWORK) for pods in ranges)


def test_networks_are_reserved_ones_and_do_not_overlap() -> None:
    networks = [network for number in layout.NUMBERS for network in layout.networks(number).all]
    assert all(any(network.subnet_of(reserved) for reserved in RESERVED) for network in networks)
    assert not any(one.overlaps(other) for one, other in combinations(networks, 2))


def test_second_sandbox_shares_no_name_and_no_path_with_the_first() -> None:
    names = [(layout.cgroup(number), layout.state(number)) for number in layout.NUMBERS]
    assert all(len(set(each)) == len(layout.NUMBERS) for each in zip(*names, strict=True))


def test_second_sandbox_has_room_for_all_nodes() -> None:
    second = layout.networks("2")
    assert len(list(second.pods.subnets(new_prefix=second.pods_of_node))) > layout.MAX_NODES


def test_each_node_has_a_zone() -> None:
    assert [node.zone for node in layout.nodes(3)] == ["zone-1", "zone-2", "zone-3"]


def test_cache_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCDOPS_CACHE", "/elsewhere")
    assert layout.cache_dir() == Path("/elsewhere")
    monkeypatch.delenv("ETCDOPS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert layout.cache_dir() == Path("/xdg/etcdops")
