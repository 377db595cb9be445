from __future__ import annotations

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import WATCHED

from benchmarks import bootstrap


def test_unwatched_objects_trigger_no_reconcile() -> None:
    objects = bootstrap.same_objects("here", "one", 1)
    watched = [each for each in objects if WATCHED.items() <= each["metadata"]["labels"].items()]
    assert [each["metadata"]["name"] for each in watched] == ["one-client"]
    for each in objects:
        unwatched = bootstrap.unwatched(each)
        assert not WATCHED.keys() & unwatched["metadata"]["labels"].keys()
        assert unwatched["metadata"]["name"] == each["metadata"]["name"]
        assert unwatched.get("spec") == each.get("spec")
