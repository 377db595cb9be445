from __future__ import annotations

from ansible_collections.etcdops.etcd.plugins.modules import etcd_leader

from ..etcds import Cluster, Member, eventually
from ..running import fail, succeed


def _leads(cluster: Cluster, member: Member) -> bool:
    status = cluster.client(member).status()
    return status.leader_id == status.member_id


def test_leadership_moves_to_the_named_member(own_three: Cluster) -> None:
    leader = own_three.leader()
    transferee, other = (member for member in own_three.members if member is not leader)
    endpoints = [other.client_url]

    foreseen = succeed(etcd_leader, check=True, endpoints=endpoints, name=transferee.name)
    assert (foreseen["changed"], foreseen["leader"]["name"]) == (True, transferee.name)
    assert _leads(own_three, leader)

    moved = succeed(etcd_leader, endpoints=endpoints, name=transferee.name)
    assert (moved["changed"], moved["leader"]) == (True, foreseen["leader"])
    assert moved["diff"] == {"before": {"leader": leader.name}, "after": {"leader": transferee.name}}
    eventually(lambda: _leads(own_three, transferee))
    assert not succeed(etcd_leader, endpoints=endpoints, id=moved["leader"]["id"])["changed"]


def test_leader_becomes_a_follower(own_three: Cluster) -> None:
    leader = own_three.leader()
    other = next(member for member in own_three.members if member is not leader)
    assert not succeed(etcd_leader, endpoints=own_three.endpoints, name=other.name, state="follower")["changed"]

    moved = succeed(etcd_leader, endpoints=own_three.endpoints, name=leader.name, state="follower")
    assert moved["changed"]
    eventually(lambda: own_three.leader().name == moved["leader"]["name"] != leader.name)
    assert not succeed(etcd_leader, endpoints=own_three.endpoints, name=leader.name, state="follower")["changed"]


def test_only_a_healthy_voter_can_lead(own_three: Cluster) -> None:
    leader = own_three.leader()
    down, other = (member for member in own_three.members if member is not leader)
    down.kill()
    message = fail(etcd_leader, endpoints=own_three.endpoints, name=down.name)
    assert message.startswith(f"{down.name} can't lead: ")
    other.kill()
    eventually(lambda: own_three.client(leader).status().leader_id == 0)
    assert "has no leader" in fail(etcd_leader, endpoints=[leader.client_url], name=other.name)


def test_impossible_transfer_is_refused(one: Cluster) -> None:
    assert "there is no member m7; there are m0" in fail(etcd_leader, endpoints=one.endpoints, name="m7")
    message = fail(etcd_leader, endpoints=one.endpoints, name="m0", state="follower")
    assert message == "there is no other healthy voter to lead"
    assert not succeed(etcd_leader, endpoints=one.endpoints, name="m0")["changed"]
