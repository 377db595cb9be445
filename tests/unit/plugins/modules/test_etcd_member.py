from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.etcdops.etcd.plugins.modules import etcd_member

from ..etcds import HOST, Certificates, Cluster, eventually, free_ports, healthy
from ..running import Result, fail, run, succeed


def _names(cluster: Cluster) -> list[str]:
    return sorted(member.name for member in cluster.client().members().members)


def test_member_joins_and_leaves(own: Cluster) -> None:
    """The whole life of a member; each step in check mode first, then for real, then once more."""
    joining = own.prepare("m1")

    def step(**wanted: Any) -> Result:
        arguments = {"endpoints": own.endpoints[:1], **wanted}
        before = own.client().members()
        foreseen = succeed(etcd_member, check=True, **arguments)
        assert own.client().members() == before
        done = succeed(etcd_member, **arguments)
        assert (foreseen["changed"], done["changed"]) == (True, True)
        assert foreseen["action"] == done["action"]
        assert done["members"] == done["diff"]["after"]["members"] != done["diff"]["before"]["members"]
        again = succeed(etcd_member, **arguments)
        assert (again["changed"], again["action"], again["members"]) == (False, "none", done["members"])
        assert again["diff"]["after"] == again["diff"]["before"]
        return done

    # Wrong at first, as it happens.
    wrong = f"http://{HOST}:{free_ports(1)[0]}"
    added = step(peer_urls=[wrong])
    assert (added["action"], added["member"]["learner"], added["member"]["name"]) == ("add", True, "")
    member_id = added["member"]["id"]

    updated = step(id=member_id, peer_urls=[joining.peer_url])
    assert (updated["action"], updated["member"]["id"]) == ("update", member_id)
    assert updated["member"]["peer_urls"] == [joining.peer_url]

    assert f"promoting {member_id} ({joining.peer_url}) would leave 1 healthy of 2 voters" in fail(
        etcd_member, endpoints=own.endpoints[:1], id=member_id, state="promoted"
    )
    result = run(etcd_member, endpoints=own.endpoints[:1], id=member_id, state="promoted", force=True)
    assert result["msg"].endswith("is not in sync with the leader yet; promote it again later")
    assert result["code"] == 9

    own.start(joining, state="existing")
    eventually(lambda: own.client(joining).status().leader_id)
    eventually(lambda: "m1" in _names(own))
    unchanged = succeed(etcd_member, endpoints=own.endpoints[:1], name="m1", peer_urls=[joining.peer_url])
    assert (unchanged["changed"], unchanged["member"]["name"]) == (False, "m1")

    def in_sync() -> bool:  # what etcd calls in sync may take a moment
        result = run(etcd_member, endpoints=own.endpoints[:1], name="m1", state="promoted", check=True)
        return not result.get("failed") and own.client(joining).status().raft_applied_index >= (
            own.client().status().raft_applied_index
        )

    eventually(in_sync)
    promoted = step(name="m1", state="promoted")
    assert (promoted["action"], promoted["member"]["learner"]) == ("promote", False)

    # etcd lets no voter go that has been connected for less than 5 seconds; it says so, or time was up already.
    result = run(etcd_member, endpoints=own.endpoints[:1], name="m1", state="absent")
    assert "was connected less than 5 seconds ago" in result.get("msg", "") or result["action"] == "remove"


def test_learner_is_removed(own: Cluster) -> None:
    arguments: dict[str, Any] = {"endpoints": own.endpoints, "peer_urls": [f"http://{HOST}:1"]}
    added = succeed(etcd_member, **arguments)
    removed = succeed(etcd_member, **arguments, state="absent")
    assert (removed["changed"], removed["action"]) == (True, "remove")
    assert removed["member"] == added["member"]
    again = succeed(etcd_member, **arguments, state="absent")
    assert (again["changed"], again["member"]) == (False, None)
    assert _names(own) == ["m0"]


def test_removal_that_costs_the_quorum_is_refused_while_a_member_is_down(own_three: Cluster) -> None:
    leader = own_three.leader()
    down, other = (member for member in own_three.members if member is not leader)
    down.kill()
    eventually(healthy(own_three.client(other)))
    endpoints = own_three.endpoints
    for victim in (leader, other):
        for check in (True, False):
            message = fail(etcd_member, check=check, endpoints=endpoints, name=victim.name, state="absent")
            assert message.startswith(f"removing {victim.name} would leave 1 healthy of 2 voters where 2 are needed")
            assert f"bring back or remove unhealthy members first: {down.name}" in message
    # force asks etcd, which knows that it can't be done.
    message = fail(etcd_member, endpoints=endpoints, name=other.name, state="absent", force=True)
    assert "etcdserver: unhealthy cluster" in message
    assert "would lose quorum" in fail(etcd_member, endpoints=endpoints, peer_urls=[f"http://{HOST}:1"], learner=False)
    assert len(own_three.client(leader).members().members) == 3

    gone = succeed(etcd_member, endpoints=endpoints, name=down.name, state="absent")
    assert (gone["changed"], gone["action"], len(gone["members"])) == (True, "remove", 2)
    assert not succeed(etcd_member, endpoints=endpoints, name=down.name, state="absent")["changed"]


def test_leadership_moves_before_the_leader_is_removed(own_three: Cluster) -> None:
    leader = own_three.leader()
    others = [member for member in own_three.members if member is not leader]

    # Leadership moves first; then etcd may still refuse, because all must have been connected for 5 seconds.
    run(etcd_member, endpoints=own_three.endpoints, name=leader.name, state="absent")
    new_leader = own_three.client(others[0]).status().leader_id
    assert new_leader in {own_three.client(member).status().member_id for member in others}


def test_membership_is_not_changed_without_quorum(own_three: Cluster) -> None:
    survivor, *others = own_three.members
    for other in others:
        other.kill()
    eventually(lambda: own_three.client().status().leader_id == 0)
    for state in ("present", "absent"):
        message = fail(
            etcd_member, endpoints=[survivor.client_url], peer_urls=[others[0].peer_url], state=state, force=True
        )
        assert message.startswith("the cluster has no quorum, so its members can't be changed")
        assert "m1: " in message


def test_only_voter_is_not_removed(one: Cluster) -> None:
    message = fail(etcd_member, endpoints=one.endpoints, name="m0", state="absent")
    assert "it is the only voter; to end the cluster, stop it" in message
    assert "etcdserver: " in fail(etcd_member, endpoints=one.endpoints, name="m0", state="absent", force=True)
    assert _names(one) == ["m0"]


def test_member_that_is_as_wanted_is_not_changed(one: Cluster) -> None:
    for wanted in ({"name": "m0"}, {"peer_urls": [one.members[0].peer_url]}, {"name": "m0", "state": "promoted"}):
        result = succeed(etcd_member, endpoints=one.endpoints, **wanted)
        assert (result["changed"], result["member"]["name"]) == (False, "m0")
    assert not succeed(etcd_member, endpoints=one.endpoints, id="123abc", state="absent")["changed"]


def test_invalid_options_are_refused(one: Cluster) -> None:
    assert "one of the following is required: name, id, peer_urls" in fail(etcd_member, endpoints=one.endpoints)
    assert "it must be hexadecimal" in fail(etcd_member, endpoints=one.endpoints, id="m0")
    assert "given member URLs are invalid" in fail(etcd_member, endpoints=one.endpoints, peer_urls=["here"])
    assert "give peer_urls to add it" in fail(etcd_member, endpoints=one.endpoints, name="m7")


def test_membership_is_changed_with_tls_and_auth(version: str, certificates: Certificates, tmp_path: Path) -> None:
    cluster = Cluster(version, tmp_path, certificates)
    arguments: dict[str, Any] = {
        "ca_cert": certificates.path("ca.crt"),
        "client_cert": certificates.path("nameless.crt"),
        "client_key": certificates.path("nameless.key"),
        "peer_urls": [f"http://{HOST}:1"],
    }
    root: dict[str, Any] = {"username": "root", "password": "root"}
    guest: dict[str, Any] = {"username": "guest", "password": "guest"}
    named = {"client_cert": certificates.path("client.crt"), "client_key": certificates.path("client.key")}
    try:
        cluster.bootstrap(1).enable_auth()
        arguments["endpoints"] = cluster.endpoints
        assert "permission denied" in fail(etcd_member, **arguments, **guest)
        assert "certificates that have a common name; use one without" in fail(
            etcd_member, **(arguments | root | named)
        )
        assert succeed(etcd_member, **arguments, **root)["changed"]
        assert not succeed(etcd_member, **arguments, **root)["changed"]
        assert succeed(etcd_member, **arguments, **root, state="absent")["changed"]
    finally:
        cluster.end()
