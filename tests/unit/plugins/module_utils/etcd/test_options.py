from __future__ import annotations

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.options import renamed


def test_options_are_renamed_for_each_version() -> None:
    old = {"experimental-corrupt-check-time": "1h", "experimental-initial-corrupt-check": "true", "pre-vote": "true"}
    new = {"corrupt-check-time": "1h", "feature-gates": "InitialCorruptCheck=true", "pre-vote": "true"}
    assert renamed(old, "3.5.35") == renamed(new, "3.5.35") == old
    for version in ("3.6.16", "3.7.3"):
        assert renamed(old, version) == renamed(new, version) == new


def test_options_that_a_version_does_not_know_are_left_out() -> None:
    assert renamed({"log-format": "json", "feature-gates": "PriorityRequest=true"}, "3.5.35") == {}
