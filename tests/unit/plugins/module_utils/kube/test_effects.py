"""Each effect is on exactly the object it was decided on, on a real kube-apiserver."""

from __future__ import annotations

from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Asked
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.effects import (
    apply_all,
    apply_object,
    create_all,
    delete_found,
    delete_refs,
    existing,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest, based_on
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.ownership import owner_reference

from tests.unit.plugins.objects import Namespace


def _ref(manifest: Manifest) -> dict[str, str]:
    return {"name": manifest["metadata"]["name"], "uid": manifest["metadata"]["uid"]}


def _names(namespace: Namespace) -> list[str]:
    found = namespace.kube.list("ConfigMap", namespace.name, "test=yes")
    return [each["metadata"]["name"] for each in found]


def _some(namespace: Namespace, *names: str) -> list[Manifest]:
    return [namespace.config_map(name, labels={"test": "yes"}) for name in names]


def test_object_with_the_given_uid_is_deleted(namespace: Namespace) -> None:
    one, _ = _some(namespace, "one", "two")
    asked = Asked("ConfigMap", namespace.name)
    assert delete_refs(namespace.kube, asked, [_ref(one)], dry_run=True) == ["one"]
    assert _names(namespace) == ["one", "two"]
    assert delete_refs(namespace.kube, asked, [_ref(one)]) == ["one"]
    assert _names(namespace) == ["two"]


def test_new_object_of_the_same_name_is_left_alone(namespace: Namespace) -> None:
    (first,) = _some(namespace, "one")
    namespace.kube.delete("ConfigMap", namespace.name, "one")
    (second,) = _some(namespace, "one")
    asked = Asked("ConfigMap", namespace.name)
    for dry_run in (True, False):
        assert delete_refs(namespace.kube, asked, [_ref(first)], dry_run=dry_run) == []
    assert namespace.get("ConfigMap", "one") == second


def test_object_that_is_replaced_after_it_was_read_is_left_alone(namespace: Namespace) -> None:
    (first,) = _some(namespace, "one")
    kube = namespace.kube
    read = kube.read

    def late(asked: list[Asked]) -> list[list[Manifest]]:
        """Someone else deletes and creates it between our read and our deletion."""
        found = list(read(asked))
        kube.delete("ConfigMap", namespace.name, "one")
        _some(namespace, "one")
        return found

    kube.read = late  # type: ignore[method-assign, assignment]
    assert delete_refs(kube, Asked("ConfigMap", namespace.name), [_ref(first)]) == []
    assert delete_found(kube, [Asked("ConfigMap", namespace.name, "one")]) == []
    assert _names(namespace) == ["one"]


def test_missing_object_is_not_an_error(namespace: Namespace) -> None:
    asked = Asked("ConfigMap", namespace.name)
    assert delete_refs(namespace.kube, asked, [{"name": "absent", "uid": "1"}]) == []
    assert delete_refs(namespace.kube, asked, []) == []


def test_objects_are_deleted_by_name_and_by_selector(namespace: Namespace) -> None:
    _some(namespace, "one", "two")
    namespace.config_map("three")
    asked = [Asked("ConfigMap", namespace.name, "three"), Asked("ConfigMap", namespace.name, selector="test=yes")]
    assert delete_found(namespace.kube, asked, dry_run=True) == ["three", "one", "two"]
    assert delete_found(namespace.kube, asked) == ["three", "one", "two"]
    assert delete_found(namespace.kube, asked) == []


def test_object_that_is_being_deleted_is_deleted_again_only_by_force(namespace: Namespace) -> None:
    held = namespace.config_map("held", finalizers=["etcdops.dev/test"])
    asked = Asked("ConfigMap", namespace.name)
    assert delete_refs(namespace.kube, asked, [_ref(held)]) == ["held"]
    assert delete_refs(namespace.kube, asked, [_ref(held)]) == []
    assert delete_refs(namespace.kube, asked, [_ref(held)], "force") == ["held"]


def test_force_removes_a_pod_that_no_kubelet_confirms(namespace: Namespace) -> None:
    pod = namespace.pod("one", {}, node="gone")
    asked = Asked("Pod", namespace.name)
    assert delete_refs(namespace.kube, asked, [_ref(pod)]) == ["one"]
    assert "deletionTimestamp" in namespace.get("Pod", "one")["metadata"]
    assert delete_refs(namespace.kube, asked, [_ref(pod)], "force") == ["one"]
    assert namespace.kube.get("Pod", namespace.name, "one") is None


def test_apply_tells_whether_the_object_changed(namespace: Namespace) -> None:
    meta = {"namespace": namespace.name, "name": "one"}
    wanted: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "1"}}

    def apply(manifest: Manifest, *, dry_run: bool = False) -> bool:
        (before,) = existing(namespace.kube, [manifest])
        return apply_object(namespace.kube, manifest, before, dry_run=dry_run)

    assert existing(namespace.kube, [wanted]) == [None]
    assert apply(wanted, dry_run=True)
    assert apply(wanted)
    assert not apply(wanted)
    assert not apply(wanted, dry_run=True)
    other = {**wanted, "data": {"a": "2"}}
    assert apply(other, dry_run=True)
    assert namespace.get("ConfigMap", "one")["data"] == {"a": "1"}
    assert apply(other)


def _budget(namespace: Namespace, needed: int, **labels: str) -> Manifest:
    """An object of a kind with a generation and a status."""
    meta = {"namespace": namespace.name, "name": "budget", "labels": {"one": "yes", **labels}}
    spec = {"minAvailable": needed, "selector": {"matchLabels": {"app": "etcd"}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}


def _live(namespace: Namespace) -> Manifest:
    return namespace.get("PodDisruptionBudget", "budget")


def test_object_that_was_changed_since_it_was_decided_on_is_not_applied(namespace: Namespace) -> None:
    (first,) = _some(namespace, "one")
    meta = {"namespace": namespace.name, "name": "one"}
    wanted = based_on({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "1"}}, first)
    assert apply_all(namespace.kube, [wanted]).changed
    late = apply_all(namespace.kube, [{**wanted, "data": {"a": "2"}}, _budget(namespace, 1)])
    assert (late.changed, late.names) == (False, [])
    assert "ConfigMap one was changed by someone else" in late.refused
    assert namespace.get("ConfigMap", "one")["data"] == {"a": "1"}
    assert namespace.kube.get("PodDisruptionBudget", namespace.name, "budget") is None  # nothing follows


def test_change_of_the_status_is_no_other_object(namespace: Namespace) -> None:
    apply_all(namespace.kube, [based_on(_budget(namespace, 1), None)])
    decided = based_on(_budget(namespace, 2), _live(namespace))
    namespace.kube.patch_status("PodDisruptionBudget", namespace.name, "budget", {"disruptionsAllowed": 1})
    assert apply_all(namespace.kube, [decided]).refused == ""
    assert _live(namespace)["spec"]["minAvailable"] == 2
    assert apply_all(namespace.kube, [decided]).refused


def test_object_that_should_be_new_is_not_overwritten(namespace: Namespace) -> None:
    decided = based_on(_budget(namespace, 1), None)
    assert apply_all(namespace.kube, [decided], dry_run=True).changed
    assert apply_all(namespace.kube, [decided]).names == ["PodDisruptionBudget/budget"]
    assert apply_all(namespace.kube, [decided]).refused
    kube = namespace.kube
    # It is created after it was looked for.
    kube.read = lambda asked: iter([[] for _ in asked])  # type: ignore[method-assign]
    assert apply_all(kube, [decided]).refused


def test_what_a_created_object_has_too_much_is_removed_by_the_next_apply(namespace: Namespace) -> None:
    apply_all(namespace.kube, [based_on(_budget(namespace, 1, other="yes"), None)])
    apply_all(namespace.kube, [based_on(_budget(namespace, 1), _live(namespace))])
    assert _live(namespace)["metadata"]["labels"] == {"one": "yes"}
    managers = [(each["manager"], each["operation"]) for each in _live(namespace)["metadata"]["managedFields"]]
    assert managers == [("etcdops", "Apply")]


def test_object_of_another_owner_is_not_changed(namespace: Namespace) -> None:
    """Neither the one that was decided on, nor one that took its name."""
    theirs = namespace.config_map("one")
    wanted = _owned(namespace, "uid-1")
    for condition in (wanted, based_on(wanted, theirs)):
        done = apply_all(namespace.kube, [condition])
        assert (done.changed, done.names) == (False, [])
        assert "ConfigMap one belongs to something else" in done.refused
    assert create_all(namespace.kube, [wanted]).refused
    assert namespace.get("ConfigMap", "one") == theirs


def test_nothing_is_created_after_an_object_of_another_owner(namespace: Namespace) -> None:
    one, two = _owned(namespace, "uid-1"), _owned(namespace, "uid-1", "two")
    assert create_all(namespace.kube, [one]).names == ["ConfigMap/one"]
    assert create_all(namespace.kube, [one, two]).names == ["ConfigMap/one", "ConfigMap/two"]  # again, after a crash
    theirs = _owned(namespace, "uid-2")
    done = create_all(namespace.kube, [theirs, _owned(namespace, "uid-2", "three")])
    assert (done.names, namespace.kube.get("ConfigMap", namespace.name, "three")) == ([], None)


def test_pvc_that_was_replaced_does_not_grow(namespace: Namespace) -> None:
    namespace.claim("data")
    part = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
    }
    meta = {"namespace": namespace.name, "name": "data"}
    uid = namespace.get("PersistentVolumeClaim", "data")["metadata"]["uid"]
    assert apply_all(namespace.kube, [{**part, "metadata": {**meta, "uid": uid}}]).refused == ""
    assert "was changed" in apply_all(namespace.kube, [{**part, "metadata": {**meta, "uid": "another"}}]).refused


def _owned(namespace: Namespace, uid: str, name: str = "one") -> Manifest:
    owners = [owner_reference("EtcdCluster", "e", uid)]
    meta = {"namespace": namespace.name, "name": name, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ours": uid}}
