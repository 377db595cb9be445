from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.connection import Connection
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.leadership import in_sync, move_leader, successor
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.restart_order import Voter, voters
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import look

from ...etcds import Cluster, eventually

LEADER, SECOND, THIRD = (Voter(number, f"m{number}", True, 10_000, leads=number == 1) for number in (1, 2, 3))


@pytest.fixture
def connection() -> Iterator[Connection]:
    connection = Connection()
    yield connection
    connection.close()


def test_successor_is_the_most_advanced_follower() -> None:
    ahead = replace(THIRD, applied=10_001)
    assert successor([LEADER, SECOND, ahead], 1) == ahead


def test_updated_follower_is_preferred_to_a_more_advanced_one() -> None:
    """It need not move again when the others restart."""
    updated, ahead = replace(SECOND, updated=True), replace(THIRD, applied=10_001)
    assert successor([LEADER, updated, ahead], 1) == updated


def test_unhealthy_voter_is_no_successor() -> None:
    assert successor([LEADER, SECOND, replace(THIRD, healthy=False, applied=10_001)], 1) == SECOND


def test_voter_that_is_behind_is_no_successor() -> None:
    behind = replace(SECOND, applied=4_999, updated=True)
    assert not in_sync([LEADER, behind], behind)
    assert successor([LEADER, behind], 1) is None
    near = replace(behind, applied=5_000)
    assert successor([LEADER, near], 1) == near


def test_only_voter_has_no_successor(one: Cluster, connection: Connection) -> None:
    found = look(connection, one.endpoints)
    assert successor(voters(found), found.leader_id) is None


def test_leadership_moves_to_the_successor(own_three: Cluster, connection: Connection) -> None:
    found = look(connection, own_three.endpoints)
    chosen = successor(voters(found), found.leader_id)
    assert chosen
    assert chosen.id != found.leader_id
    move_leader(connection, found, chosen.id)
    eventually(lambda: own_three.client().status().leader_id == chosen.id)

    down = next(member for member in own_three.members if member.name == chosen.name)
    down.kill()
    eventually(lambda: look(connection, own_three.endpoints).leader_id not in (0, chosen.id))
    found = look(connection, own_three.endpoints)
    other = successor(voters(found), found.leader_id)
    assert other
    assert other.id not in (chosen.id, found.leader_id)
