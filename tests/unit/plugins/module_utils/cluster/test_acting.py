"""The acting modules ask etcd again immediately before they act. Against real etcds and a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import acting
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.acting import change_member
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.restart import Restart, restart_member
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import ChangedError, KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.modules import etcdcluster_member

from ...apiserver import ApiServer
from ...etcds import eventually
from ...objects import Namespace
from ...running import succeed
from .live import Live


@contextmanager
def _reached(live: Live) -> Iterator[acting.Live]:
    with acting.reach(live.kube, live.namespace, "e") as found:
        yield found


def _pod(live: Live, number: int) -> Manifest | None:
    return live.kube.get("Pod", live.namespace, f"e-{number}")


def _uid(live: Live, number: int) -> str:
    found = _pod(live, number)
    assert found
    return str(found["metadata"]["uid"])


def _is_deleted(live: Live, number: int) -> bool:
    found = _pod(live, number)
    return found is None or "deletionTimestamp" in found["metadata"]


def _members(live: Live) -> dict[str, bool]:
    """The peer URLs of all members, and whether each is a learner."""
    client = live.etcds.client(live.etcds.members[0])
    members = eventually(lambda: client.members().members)  # leadership may have moved
    return {member.peer_urls[0]: member.is_learner for member in members}


def test_every_member_is_asked(three_live: Live) -> None:
    with _reached(three_live) as live:
        assert (live.view.quorum, len(live.view.voters), len(live.view.healthy)) == (True, 3, 3)
        assert live.view.cluster_id == three_live.etcds.client().status().cluster_id


def test_missing_etcdcluster_is_an_error(three_live: Live) -> None:
    with (
        pytest.raises(KubeError, match="EtcdCluster other is gone"),
        acting.reach(three_live.kube, three_live.namespace, "other"),
    ):
        pass


def test_missing_credentials_are_an_error(three_live: Live) -> None:
    secure = three_live.resource
    secure = {**secure, "metadata": {"namespace": three_live.namespace, "name": "secure"}}
    three_live.kube.apply(secure | {"spec": secure["spec"] | {"tls": {"mode": "Managed"}}})
    with (
        pytest.raises(KubeError, match="Secret secure-operator-tls is gone"),
        acting.reach(three_live.kube, three_live.namespace, "secure"),
    ):
        pass


def test_secret_of_something_else_is_not_used_as_credentials(three_live: Live) -> None:
    secure = three_live.resource
    secure = {**secure, "metadata": {"namespace": three_live.namespace, "name": "foreign"}}
    secure.pop("status", None)
    three_live.kube.apply(secure | {"spec": secure["spec"] | {"tls": {"mode": "Managed"}}})
    meta = {"namespace": three_live.namespace, "name": "foreign-operator-tls"}
    three_live.kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    with (
        pytest.raises(ChangedError, match="Secret foreign-operator-tls belongs to something else"),
        acting.reach(three_live.kube, three_live.namespace, "foreign"),
    ):
        pass


def test_members_of_another_cluster_do_not_count(three_live: Live) -> None:
    three_live.kube.patch_status("EtcdCluster", three_live.namespace, "e", {"clusterID": "abc"})
    with pytest.raises(EtcdError, match="it belongs to another cluster"), _reached(three_live):
        pass


def test_member_whose_pod_is_being_deleted_is_not_counted_on(three_live: Live) -> None:
    with _reached(three_live) as live:
        assert change_member(live, "absent", member_id=three_live.member_id(2), dry_run=True).change
    three_live.kube.delete("Pod", three_live.namespace, "e-1")  # it stays until its node confirms
    with _reached(three_live) as live:
        assert live.view.healthy == {int(three_live.member_id(number), 16) for number in (0, 2)}
        assert three_live.cluster.client_url("e-1") not in live.view.voter_urls
        with pytest.raises(EtcdError, match="would lose quorum"):
            change_member(live, "absent", member_id=three_live.member_id(2))
        leaving = three_live.member_id(1)  # may be removed itself; etcd refuses until voters were connected for 5 s
        assert eventually(lambda: change_member(live, "absent", member_id=leaving).change)
    assert len(_members(three_live)) == 2


def test_learner_is_added_once_and_removed(three_live: Live) -> None:
    url = three_live.cluster.peer_url("e-3")
    with _reached(three_live) as live:
        assert change_member(live, "learner", "e-3", dry_run=True).change
        assert url not in _members(three_live)
        # etcd refuses until its voters have been connected for 5 seconds.
        assert eventually(lambda: change_member(live, "learner", "e-3").change)
    assert _members(three_live)[url] is True
    with _reached(three_live) as live:
        assert change_member(live, "learner", "e-3").change is None
        added = next(one.member.id for one in live.view.learners)
        with pytest.raises(EtcdError, match="not in sync"):
            change_member(live, "voter", member_id=f"{added:x}")
        assert change_member(live, "absent", member_id=f"{added:x}").change
    assert url not in _members(three_live)


def test_slot_of_a_member_that_has_started_gets_no_learner(three_live: Live) -> None:
    with _reached(three_live) as live, pytest.raises(EtcdError, match=r"e-1 is in use: member .* is a voter"):
        change_member(live, "learner", "e-1")


def _claim(live: Live, number: int) -> dict[str, str] | None:
    """Name and uid of a PVC; None when it is gone or being deleted."""
    found = live.kube.get("PersistentVolumeClaim", live.namespace, f"data-e-{number}")
    if found is None or "deletionTimestamp" in found["metadata"]:
        return None
    return {key: found["metadata"][key] for key in ("name", "uid")}


def test_pvc_is_deleted_only_while_no_member_that_has_started_belongs_to_it(three_live: Live) -> None:
    for number in (1, 5):
        three_live.claim(number)
    voter, free = _claim(three_live, 1), _claim(three_live, 5)
    assert voter
    assert free
    with _reached(three_live) as live:
        with pytest.raises(EtcdError, match="e-1 is in use"):
            acting.vacate(live, [free, voter], [])
        assert (_claim(three_live, 1), _claim(three_live, 5)) == (voter, free)
        assert acting.vacate(live, [{**free, "uid": "of-a-former-pvc"}], []) == []
        assert acting.vacate(live, [free], []) == ["data-e-5"]
    assert _claim(three_live, 5) is None


def test_no_pvc_is_deleted_without_quorum(three_live: Live) -> None:
    three_live.claim(5)
    free = _claim(three_live, 5)
    assert free
    for member in three_live.etcds.members[1:]:
        member.kill()
    with _reached(three_live) as live, pytest.raises(EtcdError, match="no quorum"):
        acting.vacate(live, [free], [])
    assert _claim(three_live, 5)


def test_leader_moves_leadership_before_it_restarts(three_live: Live) -> None:
    number = three_live.leader
    other = (number + 1) % 3
    restart = Restart(f"e-{number}", _uid(three_live, number), three_live.member_id(other))
    with _reached(three_live) as live:
        assert restart_member(live, restart, dry_run=True) is True
        assert (three_live.leader, _is_deleted(three_live, number)) == (number, False)
        assert restart_member(live, restart) is True
    assert (three_live.leader, _is_deleted(three_live, number)) == (other, True)


def test_pod_with_another_uid_is_not_deleted(three_live: Live) -> None:
    number = next(each for each in range(3) if each != three_live.leader)
    with _reached(three_live) as live:
        assert restart_member(live, Restart(f"e-{number}", "a-former-uid")) is False
    assert not _is_deleted(three_live, number)


def test_configuration_is_applied_before_the_pod_is_deleted(three_live: Live) -> None:
    number = next(each for each in range(3) if each != three_live.leader)
    meta = {"namespace": three_live.namespace, "name": "e-config"}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"e-0.yaml": "text"}}
    with _reached(three_live) as live:
        restart_member(live, Restart(f"e-{number}", _uid(three_live, number), objects=(config_map,)))
    applied = three_live.kube.get("ConfigMap", three_live.namespace, "e-config")
    assert applied
    assert applied["data"] == {"e-0.yaml": "text"}


@pytest.mark.parametrize("how", ["killed", "stopping"])
def test_no_member_restarts_while_another_is_not_dependable(three_live: Live, how: str) -> None:
    number, other = (each for each in range(3) if each != three_live.leader)
    restart = Restart(f"e-{number}", _uid(three_live, number))
    if how == "killed":
        three_live.etcds.members[other].kill()
    else:
        three_live.kube.delete("Pod", three_live.namespace, f"e-{other}")
    with _reached(three_live) as live, pytest.raises(EtcdError, match=f"e-{other} is not healthy"):
        restart_member(live, restart)
    assert not _is_deleted(three_live, number)


def test_downgrade_is_enabled_and_cancelled(three_live: Live) -> None:
    client = three_live.etcds.client()
    eventually(lambda: client.cluster_version().startswith("3.6"))
    with _reached(three_live) as live:
        assert acting.set_downgrade(live, "3.5", dry_run=True) is True
        assert client.status().downgrade == ""
        assert acting.set_downgrade(live, "3.5") is True
    assert eventually(lambda: client.status().downgrade).startswith("3.5")
    with _reached(three_live) as live:
        assert acting.set_downgrade(live, "") is True
    eventually(lambda: client.status().downgrade == "")


def test_refusal_is_a_result_of_the_module_and_no_failure(
    three_live: Live, apiserver: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig()))
    three_live.kube.delete("Pod", three_live.namespace, "e-1")
    arguments: dict[str, Any] = {"namespace": three_live.namespace, "name": "e", "state": "absent"}
    refused = succeed(etcdcluster_member, **arguments, id=three_live.member_id(2))
    assert (refused["changed"], "would lose quorum" in refused["refused"]) == (False, True)
    leaving = three_live.member_id(1)
    # etcd refuses until its voters have been connected for 5 seconds, and while it elects a leader.
    assert eventually(lambda: succeed(etcdcluster_member, **arguments, id=leaving)["changed"])

    def again() -> list[dict[str, Any]]:
        result = succeed(etcdcluster_member, **arguments, id=leaving)
        return [] if result["refused"] else [result]

    assert eventually(again)[0]["changed"] is False


def test_pods_of_an_earlier_spec_are_recreated_only_before_the_cluster_has_formed(namespace: Namespace) -> None:
    namespace.cluster("e")
    pod = namespace.pod("e-0", {"app": "etcd"})
    ref = {key: pod["metadata"][key] for key in ("name", "uid")}
    namespace.kube.patch_status("EtcdCluster", namespace.name, "e", {"clusterID": "abc"})
    with pytest.raises(ChangedError, match="e has formed"):
        acting.recreate(namespace.kube, namespace.name, "e", [ref])
    with pytest.raises(ChangedError, match="or is gone"):
        acting.recreate(namespace.kube, namespace.name, "absent", [ref])
    namespace.kube.patch_status("EtcdCluster", namespace.name, "e", {"clusterID": None})
    assert acting.recreate(namespace.kube, namespace.name, "e", [{**ref, "uid": "another"}]) == []
    assert acting.recreate(namespace.kube, namespace.name, "e", [ref]) == ["e-0"]
