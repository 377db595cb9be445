"""The verbs against a real kube-apiserver, and what happens on the wire against a server of our own."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import client
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import FIELD_MANAGER, Asked, Kube, KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from kubernetes.client.configuration import Configuration

from sandbox import layout
from tests.unit.plugins.apiserver import TOKEN, ApiServer

from . import servers
from .servers import Server


@pytest.fixture
def kube(apiserver: ApiServer) -> Kube:
    return Kube(apiserver.settings)


def _config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Manifest:
    meta = {"namespace": "default", "name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def test_create_get_list_and_delete(kube: Kube) -> None:
    assert kube.get("ConfigMap", "default", "one") is None
    created = kube.create(_config_map("one", {"set": "of-two"}, a="b")) or {}
    assert kube.create(_config_map("one")) is None
    kube.create(_config_map("two", {"set": "of-two"}))
    kube.create(_config_map("three"))
    assert kube.get("ConfigMap", "default", "one") == created
    found = kube.list("ConfigMap", "default", "set=of-two")
    assert [each["metadata"]["name"] for each in found] == ["one", "two"]
    assert kube.delete("ConfigMap", "default", "one", {"uid": created["metadata"]["uid"]}) is True
    assert kube.delete("ConfigMap", "default", "one") is False
    assert kube.get("ConfigMap", "default", "one") is None


def test_delete_with_a_uid_spares_a_newer_object_of_that_name(kube: Kube) -> None:
    first = kube.create(_config_map("again")) or {}
    kube.delete("ConfigMap", "default", "again")
    second = kube.create(_config_map("again")) or {}
    assert kube.delete("ConfigMap", "default", "again", {"uid": first["metadata"]["uid"]}) is False
    assert kube.get("ConfigMap", "default", "again") == second


def test_create_refuses_unknown_fields(kube: Kube) -> None:
    with pytest.raises(
        KubeError, match=r'POST api/v1/namespaces/default/configmaps: .*unknown field "typo"'
    ) as refused:
        kube.create(_config_map("strict") | {"typo": 1})
    assert refused.value.status == 400


def test_apply_takes_fields_from_other_managers_and_is_idempotent(kube: Kube) -> None:
    kube.create(_config_map("shared", mine="old", theirs="stays"))
    applied = kube.apply(_config_map("shared", mine="new"))
    assert applied["data"] == {"mine": "new", "theirs": "stays"}
    owned = {each["operation"]: each["fieldsV1"].get("f:data", {}) for each in applied["metadata"]["managedFields"]}
    assert owned == {"Apply": {"f:mine": {}}, "Update": {".": {}, "f:theirs": {}}}
    assert {each["manager"] for each in applied["metadata"]["managedFields"]} == {FIELD_MANAGER}
    again = kube.apply(_config_map("shared", mine="new"))
    assert again["metadata"]["resourceVersion"] == applied["metadata"]["resourceVersion"]


def test_dry_run_changes_nothing(kube: Kube) -> None:
    assert (kube.create(_config_map("dry"), dry_run=True) or {})["metadata"]["name"] == "dry"
    assert kube.apply(_config_map("dry", a="b"), dry_run=True)["data"] == {"a": "b"}
    assert kube.get("ConfigMap", "default", "dry") is None


def test_annotations_are_set_and_removed(kube: Kube) -> None:
    kube.create(_config_map("noted"))
    assert kube.annotate("ConfigMap", "default", "noted", {"a": "1", "b": "2"})
    assert kube.annotate("ConfigMap", "default", "noted", {"a": None})
    assert (kube.get("ConfigMap", "default", "noted") or {})["metadata"]["annotations"] == {"b": "2"}
    assert kube.annotate("ConfigMap", "default", "absent", {"a": "1"}) is None


def test_write_with_a_resource_version_is_refused_after_another_write(kube: Kube) -> None:
    read = kube.create(_config_map("contested")) or {}
    version = read["metadata"]["resourceVersion"]
    first = kube.annotate("ConfigMap", "default", "contested", {"holder": "first"}, version)
    assert first
    assert kube.annotate("ConfigMap", "default", "contested", {"holder": "second"}, version) is None
    assert (kube.get("ConfigMap", "default", "contested") or {})["metadata"]["annotations"] == {"holder": "first"}
    assert kube.annotate("ConfigMap", "default", "contested", {"holder": None}, first["metadata"]["resourceVersion"])


def test_the_status_is_merged_and_the_spec_is_left_alone(apiserver: ApiServer, kube: Kube) -> None:
    apiserver.define(layout.REPOSITORY / "deploy/crd/etcdclusters.yaml")
    spec = {"size": 3, "version": "3.6.16"}
    meta = {"namespace": "default", "name": "example"}
    kube.create({"apiVersion": "etcdops.dev/v1beta1", "kind": "EtcdCluster", "metadata": meta, "spec": spec})
    before = kube.get("EtcdCluster", "default", "example") or {}
    kube.patch_status("EtcdCluster", "default", "example", {"phase": "Creating", "message": "one"})
    kube.patch_status("EtcdCluster", "default", "example", {"message": "two", "phase": None})
    after = kube.get("EtcdCluster", "default", "example") or {}
    assert after["status"] == {"message": "two"}
    assert after["spec"] == before["spec"]
    kube.patch_status("EtcdCluster", "default", "absent", {"phase": "Creating"})  # deleted meanwhile: no error


def test_a_terminating_namespace_takes_nothing_new(apiserver: ApiServer, kube: Kube) -> None:
    apiserver.namespace("going")
    manifest = _config_map("late")
    manifest["metadata"]["namespace"] = "going"
    assert kube.takes_nothing_new(manifest) is False
    kube._call("DELETE", "api/v1/namespaces/going")  # no controller finishes this
    assert kube.takes_nothing_new(manifest) is True


def test_read_gives_what_is_there_in_the_order_asked(kube: Kube) -> None:
    for number in range(5):
        kube.create(_config_map(f"read-{number}", {"read": "yes"}))
    names = [f"read-{number}" for number in range(5)]
    all_of_them, absent, *others = kube.read(
        [
            Asked("ConfigMap", "default", selector="read=yes"),
            Asked("Secret", "default", "absent"),
            *(Asked("ConfigMap", "default", name) for name in names),
        ]
    )
    assert [each["metadata"]["name"] for each in all_of_them] == names
    assert absent == []
    assert [one["metadata"]["name"] for (one,) in others] == names
    assert list(kube.read([])) == []


def test_no_log_is_none(kube: Kube) -> None:
    assert kube.log("default", "absent", "etcd") is None


def test_refused_credentials_are_loaded_again_once(apiserver: ApiServer) -> None:
    tokens = ["expired", TOKEN]
    kube = Kube(lambda: apiserver.settings(tokens.pop(0)))
    assert kube.get("ConfigMap", "default", "absent") is None
    assert tokens == []
    with pytest.raises(KubeError, match="Unauthorized") as refused:
        Kube(lambda: apiserver.settings("wrong")).list("Pod", "default", "")
    assert refused.value.status == 401


def test_a_server_certificate_of_another_ca_is_refused(apiserver: ApiServer) -> None:
    settings = Configuration(host=apiserver.url, api_key={"BearerToken": f"Bearer {TOKEN}"})
    with pytest.raises(KubeError, match=r"https://127\.0\.0\.1:\d+ does not answer: .*CERTIFICATE_VERIFY_FAILED"):
        Kube(lambda: settings).get("Pod", "default", "any")


@pytest.fixture(params=[0, 1, 3], ids=["keeps connections", "closes after each answer", "closes now and then"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with servers.running(hang_up_after=request.param) as server:
        yield server


def _plain(server: Server, *, timeout: float = 10) -> Kube:
    return Kube(lambda: Configuration(host=server.url), timeout=timeout)


ASKED = [
    Asked("Pod", "ns", selector="a=b"),
    Asked("Secret", "ns", "404"),
    *(Asked("Secret", "ns", f"s{number}") for number in range(6)),
]


def test_reads_survive_closed_connections(server: Server) -> None:
    kube = _plain(server)
    pods, absent, *others = kube.read(ASKED)
    assert pods == [{"path": "/api/v1/namespaces/ns/pods?labelSelector=a%3Db"}]
    assert absent == []
    assert [one["message"] for (one,) in others] == [f"/api/v1/namespaces/ns/secrets/s{n}" for n in range(6)]
    assert (kube.get("Secret", "ns", "next") or {})["message"] == "/api/v1/namespaces/ns/secrets/next"
    if not server.hang_up_after:
        assert server.connections <= 2


def test_a_refusal_belongs_to_its_own_read(server: Server) -> None:
    kube = _plain(server)
    with pytest.raises(KubeError, match="secrets/403") as refused:
        list(kube.read([ASKED[0], Asked("Secret", "ns", "403"), *ASKED[1:]]))
    assert refused.value.status == 403
    assert (kube.get("Secret", "ns", "next") or {})["message"].endswith("/secrets/next")


def test_a_list_that_is_not_found_is_an_error(server: Server) -> None:
    with pytest.raises(KubeError) as refused:
        list(_plain(server).read([Asked("Pod", "404", selector="a=b")]))
    assert refused.value.status == 404


def test_reads_of_one_observation_run_concurrently() -> None:
    with servers.running() as server:
        server.meet = threading.Barrier(2)  # nobody is answered before two have asked
        assert len(list(_plain(server).read(ASKED[2:]))) == 6


def test_reads_that_nobody_waits_for_are_not_sent() -> None:
    with servers.running() as server:
        reading = _plain(server).read([Asked("Secret", "ns", f"s{number}") for number in range(100)])
        next(reading)
        reading.close()  # type: ignore[attr-defined]
        assert server.answers < 100


def test_an_answer_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_LARGEST", 16)
    with servers.running() as server, pytest.raises(KubeError, match=r"pods: the answer is larger than .* MiB"):
        Kube(lambda: Configuration(host=server.url)).list("Pod", "ns", "")


def test_a_server_that_does_not_listen() -> None:
    kube = Kube(lambda: Configuration(host="http://127.0.0.1:1"))
    with pytest.raises(KubeError, match=r"http://127\.0\.0\.1:1 does not answer: .*Connection refused$") as silence:
        list(kube.read(ASKED))
    assert silence.value.status == 0


def test_a_server_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        kube = Kube(
            lambda: Configuration(host=f"http://127.0.0.1:{listening.getsockname()[1]}", retries=0), timeout=0.3
        )
        started = time.monotonic()
        with pytest.raises(KubeError, match=r"does not answer: .*timed out"):
            kube.get("Pod", "ns", "any")
        assert time.monotonic() - started < 3


def test_a_fork_does_not_share_the_connections_of_its_parent() -> None:
    with servers.running() as server:
        kube = _plain(server)

        def right(name: str) -> bool:
            return all(
                (kube.get("Secret", "ns", f"{name}{n}") or {})["message"].endswith(f"/{name}{n}") for n in range(50)
            )

        assert right("before")
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if right("child") else 1)
            finally:
                os._exit(2)
        assert right("parent")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
