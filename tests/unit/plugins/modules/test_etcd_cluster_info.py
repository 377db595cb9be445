from __future__ import annotations

from typing import Any

from ansible_collections.etcdops.etcd.plugins.modules import etcd_cluster_info

from ..etcds import HOST, Certificates, Cluster, eventually, free_ports, healthy
from ..running import Result, fail, succeed


def _info(*endpoints: str, **options: Any) -> Result:
    return succeed(etcd_cluster_info, endpoints=list(endpoints), **options)


def _members(info: Result) -> dict[str, Result]:
    return {member["name"]: member for member in info["members"]}


def test_healthy_cluster_is_reported(three: Cluster) -> None:
    series = three.version.rpartition(".")[0]
    stored = "" if series == "3.5" else f"{series}.0"  # etcd sets it some seconds after its start
    eventually(lambda: all(three.client(one).status().storage_version == stored for one in three.members))
    info = _info(*three.endpoints)
    leader = three.leader().name
    assert (info["changed"], info["available"], info["quorum"], info["leader"]) == (False, True, True, leader)
    assert info["cluster_id"] == f"{three.client().members().cluster_id:x}"
    members = _members(info)
    assert list(members) == ["m0", "m1", "m2"]
    for one in three.members:
        member = members[one.name]
        status = three.client(one).status()
        assert member["id"] == f"{status.member_id:x}"
        assert member["role"] == ("leader" if one.name == leader else "voter")
        assert (member["healthy"], member["error"], member["alarms"]) == (True, "", [])
        assert (member["version"], member["storage_version"]) == (three.version, status.storage_version)
        assert member["db_size"] >= member["db_size_in_use"] > 0
        assert (member["peer_urls"], member["client_urls"]) == ([one.peer_url], [one.client_url])
    assert [endpoint["url"] for endpoint in info["endpoints"]] == three.endpoints
    assert all(endpoint["member"] and not endpoint["error"] for endpoint in info["endpoints"])


def test_reading_adds_no_entry_to_the_raft_log(one: Cluster) -> None:
    before = one.client().status().raft_index
    _info(*one.endpoints)
    assert one.client().status().raft_index == before


def test_members_are_discovered_from_one_endpoint(three: Cluster) -> None:
    info = _info(three.endpoints[1])
    assert all(member["healthy"] for member in info["members"])
    assert {endpoint["url"] for endpoint in info["endpoints"]} == set(three.endpoints)

    members = _members(_info(three.endpoints[1], discover=False))
    assert [members[name]["healthy"] for name in ("m0", "m1", "m2")] == [None, True, None]
    assert members["m0"]["error"] == "it was not asked"
    assert members["m0"]["version"] is None


def test_endpoint_that_is_down_is_reported_and_does_not_fail_the_module(one: Cluster) -> None:
    silent = f"http://{HOST}:{free_ports(1)[0]}"
    info = _info(silent, *one.endpoints)
    assert info["available"]
    assert info["endpoints"][0] == {"url": silent, "member": None, "error": "connection refused"}
    assert _members(info)["m0"]["healthy"]


def test_members_that_are_down_and_a_lost_quorum_are_reported(own_three: Cluster) -> None:
    survivor, second, third = own_three.members
    third.kill()
    eventually(healthy(own_three.client()))
    info = _info(*own_three.endpoints)
    members = _members(info)
    assert info["quorum"]
    assert (members["m0"]["healthy"], members["m1"]["healthy"], members["m2"]["healthy"]) == (True, True, False)
    assert members["m2"]["error"] == f"{third.client_url}: connection refused"
    assert members["m2"]["db_size"] is None

    second.kill()
    eventually(lambda: own_three.client().status().leader_id == 0)
    info = _info(survivor.client_url)
    members = _members(info)
    assert (info["available"], info["quorum"], info["leader"]) == (True, False, "")
    assert len(members) == 3
    assert (members["m0"]["healthy"], members["m0"]["error"]) == (False, "etcdserver: no leader")
    assert members["m0"]["version"] == own_three.version


def test_learner_and_alarms_are_reported(own: Cluster) -> None:
    client = own.client()
    joining = own.prepare("m1")
    client.member_add([joining.peer_url], learner=True)
    unstarted = _members(_info(own.endpoints[0]))[""]
    assert (unstarted["role"], unstarted["healthy"]) == ("learner", False)
    assert unstarted["error"] == "it has not started yet"

    own.start(joining, state="existing")
    eventually(lambda: own.client(joining).status().leader_id)
    eventually(lambda: "m1" in _members(_info(own.endpoints[0])))
    learner = _members(_info(own.endpoints[0]))["m1"]
    assert (learner["role"], learner["learner"], learner["healthy"]) == ("learner", True, True)

    assert fail(etcd_cluster_info, endpoints=[joining.client_url], discover=False) == (
        f"no voter of the cluster answers: {joining.client_url}: it is a learner"
    )

    mine = client.status().member_id
    for alarm in ("NOSPACE", "CORRUPT"):
        client.call("maintenance/alarm", {"action": "ACTIVATE", "memberID": str(mine), "alarm": alarm})
        info = _info(*own.endpoints)
        assert info["quorum"]
        assert info["alarms"] == [{"member": f"{mine:x}", "alarm": alarm}]
        assert _members(info)["m0"]["alarms"] == [alarm]
        client.call("maintenance/alarm", {"action": "DEACTIVATE", "memberID": str(mine), "alarm": alarm})


def test_silence_fails_unless_an_answer_is_not_required() -> None:
    silent = [f"http://{HOST}:{port}" for port in free_ports(2)]
    message = fail(etcd_cluster_info, endpoints=silent)
    assert message.startswith("no voter of the cluster answers: ")
    assert all(f"{url}: connection refused" in message for url in silent)
    info = _info(*silent, required=False)
    assert (info["available"], info["quorum"], info["members"], info["cluster_id"]) == (False, False, [], "")
    assert [endpoint["url"] for endpoint in info["endpoints"]] == silent


def test_endpoints_of_two_clusters_are_refused(one: Cluster, three: Cluster) -> None:
    message = fail(etcd_cluster_info, endpoints=[one.endpoints[0], three.endpoints[0]])
    assert message.startswith("the endpoints are not of one cluster: ")


def test_tls_files_are_used_and_problems_with_them_explained(secure: Cluster, certificates: Certificates) -> None:
    files = {
        "ca_cert": certificates.path("ca.crt"),
        "client_cert": certificates.path("client.crt"),
        "client_key": certificates.path("client.key"),
    }
    assert _info(*secure.endpoints, **files)["leader"] == "m0"
    cases: list[tuple[dict[str, Any], str]] = [
        (files | {"ca_cert": certificates.path("foreign-ca.crt")}, "its certificate is not trusted"),
        ({"ca_cert": files["ca_cert"]}, "client certificate"),
        (files | {"ca_cert": "/nowhere"}, "the CA file /nowhere can't be used"),
        ({"client_cert": files["client_cert"]}, "parameters are required together: client_cert, client_key"),
    ]
    for wrong, message in cases:
        assert message in fail(etcd_cluster_info, endpoints=secure.endpoints, **wrong)
    plain = secure.endpoints[0].replace("https", "http")
    assert "should the URL begin with https://" in fail(etcd_cluster_info, endpoints=[plain])


def test_invalid_options_are_refused() -> None:
    assert "endpoints is empty" in fail(etcd_cluster_info, endpoints=[])
    assert "'localhost' is not an endpoint" in fail(etcd_cluster_info, endpoints=["localhost"])
    assert "must be more than 0" in fail(etcd_cluster_info, timeout=0)


def test_learner_is_asked_with_the_token_of_a_voter(own: Cluster) -> None:
    joining = own.prepare("m1")
    client = own.client()
    client.member_add([joining.peer_url], learner=True)
    own.start(joining, state="existing")
    eventually(lambda: own.client(joining).status().leader_id)
    own.enable_auth()
    info = _info(*own.endpoints, username="root", password="root")
    # A learner takes no login; it is asked with the token that a voter gave.
    assert {name: member["healthy"] for name, member in _members(info).items()} == {"m0": True, "m1": True}
    message = fail(etcd_cluster_info, endpoints=own.endpoints, username="root", password="wrong")
    assert message == f"{own.endpoints[0]}: etcdserver: authentication failed, invalid user ID or password"
