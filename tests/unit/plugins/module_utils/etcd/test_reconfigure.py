"""One change of membership on real members; test_etcd_member.py has the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import reconfigure as change
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.client import Client
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import UNAVAILABLE, EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import Wanted
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member as Listed
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import Connection, survey

from ...etcds import HOST, Cluster, eventually

LEARNER = Wanted("present", peer_urls=(f"http://{HOST}:1",))


@pytest.fixture
def connection() -> Iterator[Connection]:
    connection = Connection()
    yield connection
    connection.close()


def _names(members: tuple[Listed, ...]) -> list[str]:
    return sorted(member.name for member in members)


def test_a_change_is_made_once(own: Cluster, connection: Connection) -> None:
    planned = change.bring_about(connection, survey(connection, own.endpoints), LEARNER, dry_run=True)
    assert planned.change
    assert planned.change.action == "add"
    assert _names(own.client().members().members) == ["m0"]

    done = change.bring_about(connection, survey(connection, own.endpoints), LEARNER)
    assert (_names(done.before), _names(done.after)) == (["m0"], ["", "m0"])
    assert all(member.id for member in done.after)
    again = change.bring_about(connection, survey(connection, own.endpoints), LEARNER)
    assert (again.change, set(again.after)) == (None, set(done.after))


def test_a_change_whose_answer_is_lost_counts_as_made(
    own: Cluster, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Client.member_add

    def deaf(client: Client, peer_urls: tuple[str, ...], learner: bool) -> Listed:
        add(client, peer_urls, learner)
        raise EtcdError(UNAVAILABLE, "the connection broke")

    monkeypatch.setattr(Client, "member_add", deaf)
    done = change.bring_about(connection, survey(connection, own.endpoints), LEARNER)
    assert _names(done.after) == ["", "m0"]


def test_a_refusal_is_explained(own: Cluster, connection: Connection) -> None:
    change.bring_about(connection, survey(connection, own.endpoints), LEARNER)
    promoted = Wanted("promoted", peer_urls=LEARNER.peer_urls, force=True)
    with pytest.raises(EtcdError, match="is not in sync with the leader yet; promote it again later"):
        change.bring_about(connection, survey(connection, own.endpoints), promoted)


def test_the_heir_is_another_healthy_voter(own_three: Cluster, connection: Connection) -> None:
    found = survey(connection, own_three.endpoints)
    heir = change.best_heir(found)
    assert heir
    assert heir.member.id != found.leader_id
    change.hand_over(connection, found, heir.member)
    eventually(lambda: own_three.client().status().leader_id == heir.member.id)

    down = next(member for member in own_three.members if member.name == heir.member.name)
    down.kill()
    eventually(lambda: survey(connection, own_three.endpoints).leader_id not in (0, heir.member.id))
    other = change.best_heir(survey(connection, own_three.endpoints))
    assert other
    assert other.member.id != heir.member.id


def test_a_leader_alone_has_no_heir(one: Cluster, connection: Connection) -> None:
    assert change.best_heir(survey(connection, one.endpoints)) is None
