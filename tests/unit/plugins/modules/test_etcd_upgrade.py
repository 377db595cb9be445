"""Real clusters go up and down, one member at a time, as the module says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.modules import etcd_upgrade

from sandbox import layout

from ..etcds import Cluster, Member, eventually, healthy
from ..running import fail, succeed

V35, V36, V37 = layout.ETCD_VERSIONS


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(V35, tmp_path / "old")
    cluster.folder.mkdir()
    try:
        yield cluster.bootstrap(3)
    finally:
        cluster.end()


def _ask(cluster: Cluster, version: str, **more: Any) -> dict[str, Any]:
    return succeed(etcd_upgrade, endpoints=cluster.endpoints, version=version, **more)


def _replace(cluster: Cluster, member: Member, version: str) -> None:
    assert member.process
    member.process.terminate()
    member.process.wait()
    cluster.version = version
    cluster.start(member)
    eventually(healthy(cluster.client(member)))


def _turn(cluster: Cluster, version: str, **more: Any) -> dict[str, Any]:
    """The answer once it is ready."""
    turn = _ask(cluster, version, state="ready", **more)
    return turn if turn["ready"] else {}


def _roll(cluster: Cluster, version: str, **more: Any) -> list[str]:
    """In the module's order; tells who led when its turn came."""
    led = []
    for name in _ask(cluster, version, **more)["order"]:
        leads = cluster.leader().name
        turn = eventually(partial(_turn, cluster, version, member=name, **more))
        assert turn["changed"] == (leads == name)
        led += [name] if turn["changed"] else []
        assert cluster.leader().name != name
        _replace(cluster, next(member for member in cluster.members if member.name == name), version)
    eventually(lambda: _ask(cluster, version, **more)["done"])
    return led


def test_cluster_goes_up_by_two_minor_versions_and_down_by_one(old: Cluster) -> None:
    old.client().put("key", "value")
    assert "from 3.5.35 to 3.6 first" in fail(etcd_upgrade, endpoints=old.endpoints, version=V37)

    planned = _ask(old, V36)
    assert (planned["ready"], planned["done"], planned["waits"]) == (True, False, "")
    assert planned["order"][-1] == old.leader().name
    assert not _ask(old, V36, state="prepared")["changed"]
    assert len(_roll(old, V36)) == 1  # leadership moves once
    assert "only if allow_downgrade" in fail(etcd_upgrade, endpoints=old.endpoints, version=V35)

    # Without this, 3.7 would end in a panic over what 3.5 has written to the log.
    assert _ask(old, V37, state="prepared", check=True)["changed"]
    assert _ask(old, V37, state="prepared")["changed"]
    assert len(_roll(old, V37)) == 1

    assert "the downgrade to 3.6 is not enabled" in _ask(old, V36, state="ready", allow_downgrade=True)["waits"]
    assert _ask(old, V36, state="prepared", allow_downgrade=True)["changed"]
    _roll(old, V36, allow_downgrade=True)
    assert old.client().get("key") == b"value"


def test_rollback_is_possible_while_one_member_has_not_moved(old: Cluster) -> None:
    first = _ask(old, V36)["order"][0]
    _replace(old, next(member for member in old.members if member.name == first), V36)
    back = _ask(old, V35)
    assert (back["order"], back["ready"]) == ([first], True)
    _roll(old, V35)


def test_interrupted_preparation_is_finished(old: Cluster) -> None:
    """Killed after etcd was told to go down a minor version, and before it was told that this was not meant."""
    _roll(old, V36)
    old.client().downgrade("ENABLE", "3.5.0")
    eventually(lambda: old.client().cluster_version().startswith("3.5."))
    assert _ask(old, V37, state="prepared")["changed"]
    assert old.client().cluster_version().startswith("3.6.")
    assert old.client().status().downgrade == ""


def test_no_member_is_ready_while_another_is_down(old: Cluster) -> None:
    first, second, _ = (next(m for m in old.members if m.name == name) for name in _ask(old, V36)["order"])
    second.kill()
    waits = _ask(old, V36, state="ready", member=first.name)
    assert (waits["ready"], waits["changed"]) == (False, False)
    assert f"{second.name} is not healthy" in waits["waits"]
    assert _ask(old, V36)["order"][0] == second.name  # it can't be missed
    assert _ask(old, V36, state="ready")["ready"]


def test_invalid_version_is_refused() -> None:
    assert "is not an etcd version" in fail(etcd_upgrade, endpoints=["http://127.0.0.1:1"], version="latest")
