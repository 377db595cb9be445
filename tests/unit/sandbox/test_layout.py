from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from sandbox import layout


def test_hosts_have_addresses_and_pod_ranges_of_their_own() -> None:
    hosts = layout.hosts(layout.MAX_NODES)
    assert len({host.address for host in hosts}) == len(hosts)
    assert all(host.address in layout.HOST_NETWORK for host in hosts)
    ranges = [host.pods for host in hosts if host.pods]
    assert len(ranges) == layout.MAX_NODES
    assert not any(one.overlaps(other) for one, other in combinations(ranges, 2))
    assert all(pods.subnet_of(layout.POD_NETWORK) for pods in ranges)


def test_the_networks_lie_in_the_test_range_and_apart() -> None:
    networks = [layout.HOST_NETWORK, layout.POD_NETWORK, layout.SERVICE_NETWORK]
    assert all(network.subnet_of(layout.RANGE) for network in networks)
    assert not any(one.overlaps(other) for one, other in combinations(networks, 2))


def test_each_node_has_a_zone() -> None:
    assert [node.zone for node in layout.nodes(3)] == ["zone-1", "zone-2", "zone-3"]


def test_the_cache_is_where_the_person_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCDOPS_CACHE", "/elsewhere")
    assert layout.cache_dir() == Path("/elsewhere")
    monkeypatch.delenv("ETCDOPS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert layout.cache_dir() == Path("/xdg/etcdops")
