"""The view from answers; tests/unit/plugins/modules/test_etcd_cluster_info.py has the whole on real members."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.connection import Connection
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.endpoint import Tls
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import (
    UNAUTHENTICATED,
    EtcdError,
    Unreachable,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Alarm, Member, MemberList
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import (
    Answer,
    ClusterView,
    NoAnswer,
    _undiscovered,
    build,
    look,
)

from ...etcds import Certificates, Cluster
from .views import healthy, learner, listed, member, status, three, url, view

DOWN = Unreachable("down", url(3))


@pytest.fixture
def connection() -> Iterator[Connection]:
    connection = Connection()
    yield connection
    connection.close()


def _member(member_id: int, *client_urls: str) -> Member:
    return Member(member_id, f"m{member_id}", (f"http://m{member_id}:2380",), client_urls, False)


@pytest.mark.parametrize(
    ("secure_only", "expected"),
    [(True, ["https://m3:2379"]), (False, ["http://m2:2379", "http://m3:2379"])],
)
def test_discovery_from_tls_endpoints_does_not_use_plain_text(secure_only: bool, expected: list[str]) -> None:
    members = MemberList(
        7,
        (
            _member(1, "https://m1:2379"),
            _member(2, "http://m2:2379"),
            _member(3, "http://m3:2379", "https://m3:2379"),
            _member(4, "https://m4:2379"),  # asked, and down
            _member(5, "unix://socket", "nonsense"),
            _member(6),  # not started
        ),
    )
    answers: dict[str, Answer | EtcdError] = {
        "https://10.0.0.1:2379": healthy(status(1), members),
        "https://m4:2379": Unreachable("down"),
    }
    assert _undiscovered(members, answers, secure_only=secure_only) == expected


def test_endpoint_named_twice_is_asked_once(one: Cluster, connection: Connection) -> None:
    assert list(look(connection, one.endpoints * 2).answers) == one.endpoints


def test_leader_is_that_of_the_newest_term() -> None:
    found = three(status(1, leader=1, term=2), status(2, leader=3, term=4), status(3, leader=3, term=4))
    assert found.leader_id == 3
    assert found.leader
    assert found.leader.member == member(3)


def test_word_of_a_quorum_counts_more_than_a_newer_term_of_a_minority() -> None:
    members = listed(*map(member, (1, 2, 3)))
    alone = Answer(status(3, leader=0, term=9, applied=99), "etcdserver: no leader", listed(member(3)))
    found = view({1: healthy(status(1), members), 2: healthy(status(2), members), 3: alone})
    assert (found.leader_id, found.quorum) == (1, True)
    assert [one.member.id for one in found.members] == [1, 2, 3]
    assert found.healthy == {1, 2}


def test_without_quorum_the_list_is_that_of_the_most_advanced_member() -> None:
    old, new = listed(member(1), member(2)), listed(*map(member, (1, 2, 3)))
    found = view(
        {
            1: Answer(status(1, leader=0, applied=5), "etcdserver: no leader", old),
            2: Answer(status(2, leader=0, applied=8), "etcdserver: no leader", new),
        }
    )
    assert (found.quorum, found.leader_id, found.leader) == (False, 0, None)
    assert len(found.members) == 3


def test_member_that_does_not_answer_is_part_of_the_view() -> None:
    members = listed(*map(member, (1, 2, 3)), Member(4, "", ("http://m4:2380",), (), True), member(5))
    found = view({1: healthy(status(1), members), 2: healthy(status(2), members), 3: DOWN})
    states = {one.member.id: (one.healthy, one.error, one.version, one.applied) for one in found.members}
    assert states == {
        1: (True, "", "3.6.16", 9),
        2: (True, "", "3.6.16", 9),
        3: (False, f"{url(3)}: down", "", 0),
        4: (False, "it has not started yet", "", 0),
        5: (None, "it was not asked", "", 0),
    }


def test_another_member_behind_a_url_does_not_count_as_that_member() -> None:
    members = listed(member(1), member(2))
    found = view({1: healthy(status(1), members), 2: healthy(status(9), members)})
    second = found.find(2)
    assert second
    assert (second.healthy, second.error) == (False, f"{url(2)}: another member answers there")


def test_requests_go_to_healthy_voters_and_to_the_leader_first() -> None:
    members = listed(member(1), member(2), member(3), member(4, learner=True))
    found = view({2: healthy(status(2, leader=3), members), 3: healthy(status(3, leader=3), members), 4: learner(4)})
    assert found.voter_urls == [url(3), url(2)]
    assert [one.member.id for one in found.learners] == [4]
    assert found.healthy == {2, 3, 4}


def test_alarms_are_those_that_any_member_reports() -> None:
    """A member that is behind does not know of the newest one. The text differs from version to version."""
    members = listed(member(1), member(2), member(3, learner=True))
    older = replace(status(1), errors=("memberID:2 alarm:NOSPACE ", "etcdserver: no leader"))
    newer = replace(status(2), errors=("alarm:CORRUPT", "memberID:2  alarm:NOSPACE"))
    found = view({1: healthy(older, members), 2: healthy(newer, members), 3: learner(3)})
    assert found.alarms == (Alarm(0, "CORRUPT"), Alarm(2, "NOSPACE"))
    assert [one.alarms for one in found.members] == [(), ("NOSPACE",), ()]


def test_alarms_are_known_without_quorum() -> None:
    reported = replace(status(1, leader=0), errors=("memberID:1 alarm:NOSPACE ",))
    assert view({1: Answer(reported, "etcdserver: no leader", listed(member(1), member(2)))}).alarms == (
        Alarm(1, "NOSPACE"),
    )


def test_alarms_and_quota_of_a_real_cluster_are_in_the_view(own_three: Cluster, connection: Connection) -> None:
    """Of every version: the text in the status says what the request for the alarms would."""
    client, ids = own_three.client(), [own_three.client(member).status().member_id for member in own_three.members]
    for member_id, alarm in ((ids[0], "NOSPACE"), (ids[2], "NOSPACE"), (0, "CORRUPT")):
        client.call("maintenance/alarm", {"action": "ACTIVATE", "memberID": str(member_id), "alarm": alarm})
    asked = client.alarms()
    assert len(asked) == 3
    before = client.status().raft_index
    for members in (own_three.members, own_three.members[1:2]):
        found = look(connection, [one.client_url for one in members], discover=False)
        assert found.alarms == tuple(sorted(asked))
    assert client.status().raft_index == before
    quotas = {one.status.db_size_quota for one in found.members if one.status}
    assert quotas == ({0} if own_three.version.startswith("3.5.") else {2 * 1024**3})


def test_reading_a_real_cluster_asks_no_alarm(one: Cluster, connection: Connection) -> None:
    before = one.client().status().raft_index
    assert look(connection, one.endpoints).require_leader().alarms == ()
    assert one.client().status().raft_index == before


def test_answer_of_another_cluster_is_an_error_when_the_cluster_is_known(
    one: Cluster, three: Cluster, connection: Connection
) -> None:
    known, other = (each.client().members().cluster_id for each in (one, three))
    found = look(connection, [*one.endpoints, three.endpoints[0]], discover=False, cluster_id=known)
    assert (found.cluster_id, found.quorum) == (known, True)
    assert [each.member.name for each in found.members] == ["m0"]
    refused = found.answers[three.endpoints[0]]
    assert isinstance(refused, EtcdError)
    assert refused.message == f"it belongs to another cluster, {other:x}"
    assert found.answer(three.endpoints[0]) is None
    assert look(connection, three.endpoints, discover=False, cluster_id=known).members == ()


def test_endpoints_of_two_clusters_are_refused_when_the_cluster_is_not_known(
    one: Cluster, three: Cluster, connection: Connection
) -> None:
    with pytest.raises(EtcdError, match="the endpoints are not of one cluster"):
        look(connection, [*one.endpoints, three.endpoints[0]])


def test_slowest_voter_decides_the_cluster_version() -> None:
    members = listed(*map(member, (1, 2, 3)), member(4, learner=True))
    answers = {number: healthy(status(number), members, agreed) for number, agreed in ((1, "3.10.0"), (2, "3.9.0"))}
    assert view({**answers, 3: DOWN, 4: learner(4)}).cluster_version == "3.9.0"
    assert view({4: learner(4)}).cluster_version == ""


def test_pending_downgrade_is_found_at_any_voter() -> None:
    downgrading = replace(status(2), downgrade="3.5.0")
    assert three(status(1), downgrading, status(3)).downgrade == "3.5.0"
    assert three(status(1), status(2), status(3)).downgrade == ""


def test_member_whose_pod_is_being_deleted_does_not_count_as_healthy() -> None:
    found = three(status(1), status(2), status(3)).without({"m2"})
    assert found.healthy == {1, 3}
    assert found.voter_urls == [url(1), url(3)]
    stopping = found.find(2)
    assert stopping
    assert stopping.error == "its pod is being deleted"


def test_silence_and_a_refusal_of_the_credentials_are_told_apart() -> None:
    silent = view({1: Unreachable("down", url(1)), 4: learner(4)})
    with pytest.raises(NoAnswer, match=f"no voter of the cluster answers: {url(1)}: down; {url(4)}: it is a learner"):
        silent.require_members()
    wrong = EtcdError(UNAUTHENTICATED, "etcdserver: authentication failed", url(2))
    with pytest.raises(EtcdError, match="authentication failed") as refused:
        view({1: Unreachable("down", url(1)), 2: wrong}).require_members()
    assert refused.value is wrong


def test_a_leader_is_required_with_quorum_only() -> None:
    assert three(status(1), status(2), status(3)).require_leader()
    for view_without in (ClusterView(), three(status(1, leader=0), status(2, leader=0), status(3, leader=0))):
        with pytest.raises(EtcdError, match="has no leader"):
            view_without.require_leader()


def test_empty_view_has_no_members() -> None:
    found = build({})
    assert (found.members, found.quorum, found.cluster_id) == ((), False, 0)


def test_password_is_not_in_the_repr(certificates: Certificates) -> None:
    assert "hush" not in repr(Connection(certificates.client, 1.0, "root", "hush"))


@pytest.mark.parametrize("certificate", ["", "nameless", "client"])
def test_auth_that_refuses_the_connection_is_part_of_the_view(
    version: str, certificates: Certificates, certificate: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Without a user name etcd refuses everything in plain text, changes only with a certificate without a common
    name, and everything with one that has a common name."""
    cluster = Cluster(version, tmp_path_factory.mktemp("auth"), certificates if certificate else None)
    files = [certificates.path(name) for name in ("ca.crt", f"{certificate}.crt", f"{certificate}.key")]
    connection = Connection(Tls(*files) if certificate else None)
    try:
        cluster.bootstrap(1)
        assert not look(connection, cluster.endpoints).needs_auth
        cluster.enable_auth()
        found = look(connection, cluster.endpoints)
        assert found.needs_auth
        assert (found.quorum, len(found.healthy)) == ((True, 1) if certificate == "nameless" else (False, 0))
        if found.quorum:
            with pytest.raises(EtcdError) as refused:
                connection.client(cluster.endpoints[0]).member_add(["http://127.0.0.1:1"], learner=True)
            assert refused.value.needs_auth
    finally:
        connection.close()
        cluster.end()
