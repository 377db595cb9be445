from __future__ import annotations

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import WATCHED

from benchmarks import bootstrap


def test_the_operator_leaves_alone_what_is_made_by_hand() -> None:
    made = bootstrap.same_objects("here", "one", 1)
    watched = [each for each in made if WATCHED.items() <= each["metadata"]["labels"].items()]
    assert [each["metadata"]["name"] for each in watched] == ["one-client"]
    for each in made:
        quiet = bootstrap.unwatched(each)
        assert not WATCHED.keys() & quiet["metadata"]["labels"].keys()
        assert quiet["metadata"]["name"] == each["metadata"]["name"]
        assert quiet.get("spec") == each.get("spec")
