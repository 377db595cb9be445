"""kube_apply and kube_delete against a real kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.modules import kube_apply, kube_delete

from tests.unit.plugins.apiserver import ApiServer
from tests.unit.plugins.running import fail, run, succeed

WHERE = "kube-modules"


@pytest.fixture(scope="module")
def namespace(apiserver: ApiServer) -> str:
    apiserver.namespace(WHERE)
    return WHERE


@pytest.fixture
def kube(apiserver: ApiServer, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Kube:
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig()))
    return Kube(apiserver.settings)


def _config_map(name: str, **data: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": WHERE, "name": name, "labels": {"test": name}},
        "data": data,
    }


def _data(kube: Kube, name: str) -> dict[str, str] | None:
    found = kube.get("ConfigMap", WHERE, name)
    return None if found is None else found.get("data", {})


def test_apply_is_idempotent(kube: Kube) -> None:
    objects = [_config_map("one", a="1"), _config_map("two", a="1")]
    assert succeed(kube_apply, check=True, objects=objects)["changed"] is True
    assert _data(kube, "one") is None
    result = succeed(kube_apply, objects=objects)
    assert (result["changed"], result["applied"]) == (True, ["ConfigMap/one", "ConfigMap/two"])
    assert succeed(kube_apply, objects=objects)["changed"] is False
    assert succeed(kube_apply, check=True, objects=objects)["changed"] is False
    assert succeed(kube_apply, check=True, objects=[_config_map("one", a="2")])["changed"] is True
    assert succeed(kube_apply, objects=[_config_map("one", a="2")])["changed"] is True
    assert _data(kube, "one") == {"a": "2"}


def test_create_only_leaves_existing_objects_unchanged(kube: Kube) -> None:
    assert succeed(kube_apply, objects=[_config_map("kept", a="1")], create_only=True)["changed"] is True
    assert succeed(kube_apply, objects=[_config_map("kept", a="2")], create_only=True)["changed"] is False
    assert _data(kube, "kept") == {"a": "1"}


def test_failed_apply_names_the_object(kube: Kube) -> None:
    wrong = _config_map("wrong")
    wrong["metadata"]["name"] = "Not_A_Name"
    result = run(kube_apply, objects=[wrong])
    assert result["failed"]
    assert "Not_A_Name" in result["msg"]


def test_delete_by_name_and_by_selector(kube: Kube) -> None:
    succeed(kube_apply, objects=[_config_map(f"gone-{number}") for number in range(3)])
    arguments: dict[str, Any] = {
        "kind": "ConfigMap",
        "namespace": WHERE,
        "names": ["gone-0", "absent"],
        "selector": "test=gone-1",
    }
    assert succeed(kube_delete, check=True, **arguments)["deleted"] == ["gone-0", "gone-1"]
    assert _data(kube, "gone-0") is not None
    assert succeed(kube_delete, **arguments)["deleted"] == ["gone-0", "gone-1"]
    assert succeed(kube_delete, **arguments)["changed"] is False
    assert [_data(kube, f"gone-{number}") is None for number in range(3)] == [True, True, False]


def test_delete_by_uid_spares_a_new_object_of_the_same_name(kube: Kube) -> None:
    succeed(kube_apply, objects=[_config_map("again"), _config_map("other")])
    uids = {name: (kube.get("ConfigMap", WHERE, name) or {})["metadata"]["uid"] for name in ("again", "other")}
    kube.delete("ConfigMap", WHERE, "again")
    succeed(kube_apply, objects=[_config_map("again")])
    objects = [{"name": name, "uid": uid} for name, uid in uids.items()]
    arguments: dict[str, Any] = {"kind": "ConfigMap", "namespace": WHERE, "objects": objects}
    assert succeed(kube_delete, check=True, **arguments)["deleted"] == ["other"]
    assert succeed(kube_delete, **arguments)["deleted"] == ["other"]
    assert _data(kube, "again") is not None
    assert "uid" in fail(kube_delete, kind="ConfigMap", namespace=WHERE, objects=[{"name": "again"}])


def test_object_that_is_being_deleted_is_not_deleted_twice(kube: Kube) -> None:
    held = _config_map("held")
    held["metadata"]["finalizers"] = ["etcdops.dev/test"]
    succeed(kube_apply, objects=[held])
    arguments: dict[str, Any] = {"kind": "ConfigMap", "namespace": WHERE, "names": ["held"]}
    assert succeed(kube_delete, **arguments)["deleted"] == ["held"]
    assert succeed(kube_delete, **arguments)["deleted"] == []


def test_unreachable_api_server_is_a_failure_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/kubeconfig")
    assert "/nowhere/kubeconfig" in fail(kube_apply, objects=[])
    assert "/nowhere/kubeconfig" in fail(kube_delete, kind="Pod", namespace=WHERE)
