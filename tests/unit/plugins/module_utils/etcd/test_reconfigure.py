"""One change of membership on real members; test_etcd_member.py has the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.client import Client
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.connection import Connection
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import (
    FAILED_PRECONDITION,
    UNAVAILABLE,
    EtcdError,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import Wanted
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.reconfigure import Outcome, reconfigure
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member as Listed
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import look

from ...etcds import HOST, Cluster, eventually

LEARNER = Wanted("present", peer_urls=(f"http://{HOST}:1",))


@pytest.fixture
def connection() -> Iterator[Connection]:
    connection = Connection()
    yield connection
    connection.close()


def _names(members: tuple[Listed, ...]) -> list[str]:
    return sorted(member.name for member in members)


def test_change_is_made_once(own: Cluster, connection: Connection) -> None:
    planned = reconfigure(connection, look(connection, own.endpoints), LEARNER, dry_run=True)
    assert planned.change
    assert planned.change.action == "add"
    assert _names(own.client().members().members) == ["m0"]

    done = reconfigure(connection, look(connection, own.endpoints), LEARNER)
    assert (_names(done.before), _names(done.after)) == (["m0"], ["", "m0"])
    assert all(member.id for member in done.after)
    again = reconfigure(connection, look(connection, own.endpoints), LEARNER)
    assert (again.change, set(again.after)) == (None, set(done.after))


def test_change_whose_answer_is_lost_counts_as_made(
    own: Cluster, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Client.member_add

    def deaf(client: Client, peer_urls: tuple[str, ...], learner: bool) -> Listed:
        add(client, peer_urls, learner)
        raise EtcdError(UNAVAILABLE, "the connection broke")

    monkeypatch.setattr(Client, "member_add", deaf)
    done = reconfigure(connection, look(connection, own.endpoints), LEARNER)
    assert _names(done.after) == ["", "m0"]


def test_learner_that_is_not_in_sync_is_not_promoted_yet(own: Cluster, connection: Connection) -> None:
    reconfigure(connection, look(connection, own.endpoints), LEARNER)
    promoted = Wanted("promoted", peer_urls=LEARNER.peer_urls, force=True)
    with pytest.raises(EtcdError, match="is not in sync with the leader yet; promote it again later"):
        reconfigure(connection, look(connection, own.endpoints), promoted)


def test_removal_of_the_leader_moves_leadership_first(
    own_three: Cluster, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = own_three.leader()
    removed: list[int] = []

    def refuse(client: Client, member_id: int) -> None:
        removed.append(client.status().leader_id)
        raise EtcdError(FAILED_PRECONDITION, "not in this test")

    monkeypatch.setattr(Client, "member_remove", refuse)
    found = look(connection, own_three.endpoints)
    with pytest.raises(EtcdError, match="not in this test"):
        reconfigure(connection, found, Wanted("absent", name=leader.name))
    assert removed
    assert found.leader_id not in removed


def test_transfer_that_fails_is_a_warning(
    own_three: Cluster, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_client: Client, _transferee: int) -> None:
        raise EtcdError(UNAVAILABLE, "etcdserver: request timed out")

    # etcd lets no voter go while one has been connected for less than 5 seconds.
    monkeypatch.setattr(Client, "member_remove", lambda client, _member_id: client.members())
    monkeypatch.setattr(Client, "move_leader", refuse)

    def remove_leader() -> Outcome:
        leader = own_three.leader()
        return reconfigure(connection, look(connection, own_three.endpoints), Wanted("absent", name=leader.name))

    done = eventually(remove_leader)  # a look may fall into an election
    assert done.warning.startswith("leadership could not be moved to m")
    assert done.warning.endswith("before the removal: etcdserver: request timed out")


def test_membership_is_not_changed_without_quorum(own_three: Cluster, connection: Connection) -> None:
    survivor, *others = own_three.members
    for other in others:
        other.kill()
    eventually(lambda: own_three.client(survivor).status().leader_id == 0)
    with pytest.raises(EtcdError, match=r"the cluster has no quorum, so its members can't be changed.*m1: "):
        reconfigure(connection, look(connection, own_three.endpoints), LEARNER)
