"""Which version can become which, and what options are called there."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import (
    downgrade_to,
    drops_log_of,
    of_image,
    parse,
    refusal,
    renamed,
)


@pytest.mark.parametrize(
    ("running", "target", "known"),
    [
        (["3.5.35", "3.5.35", "3.5.35"], "3.5.36", {}),
        (["3.5.35", "3.5.35", "3.5.35"], "3.6.16", {}),
        (["3.6.16", "3.5.35", "3.5.35"], "3.6.17", {}),  # in the middle, to a later patch
        (["3.6.16", "3.6.16", "3.5.35"], "3.5.35", {"cluster_version": "3.5.0"}),  # and back again
        (["3.6.16", "3.6.16"], "3.5.35", {"cluster_version": "3.5.0", "silent": True}),  # the last one did not come up
        (["3.6.16", "3.6.16", "3.6.15"], "3.6.15", {"cluster_version": "3.6.0"}),
        (["3.6.16"], "3.7.3", {}),
        (["3.6.16"], "3.5.35", {"cluster_version": "3.6.0", "allow_downgrade": True}),
        (["3.7.3"], "3.7.2", {"cluster_version": "3.7.0", "allow_downgrade": True}),
        ([], "3.7.3", {}),
    ],
)
def test_version_can_be_reached(running: list[str], target: str, known: dict[str, Any]) -> None:
    assert refusal(running, target, **known) == ""


@pytest.mark.parametrize(
    ("running", "target", "known", "said"),
    [
        (["3.5.35"], "3.7.3", {}, "from 3.5.35 to 3.6 first"),
        (["3.6.16", "3.5.35"], "3.7.3", {}, "from 3.5.35 to 3.6 first"),
        (["3.5.25"], "3.6.16", {}, "from 3.5.26 or later only"),
        (["3.5.35", "3.5.25"], "3.6.16", {}, "from 3.5.26 or later only"),
        (["3.6.10", "3.6.16"], "3.7.3", {}, "from 3.6.11 or later only"),
        (["3.6.16", "3.6.16"], "3.5.35", {"cluster_version": "3.6.0"}, "only if spec.upgrade.allowDowngrade"),
        # A silent member may have moved with the others: the cluster version is the new one already.
        (["3.6.16", "3.6.16"], "3.5.35", {"cluster_version": "3.6.0", "silent": True}, "allowDowngrade"),
        (["3.6.16"], "3.6.15", {"cluster_version": "3.6.0"}, "allowDowngrade"),
        (["3.7.3"], "3.5.35", {"allow_downgrade": True}, "from 3.7.3 to 3.6 first"),
    ],
)
def test_version_that_cannot_be_reached_is_refused_with_what_to_do(
    running: list[str], target: str, known: dict[str, Any], said: str
) -> None:
    assert said in refusal(running, target, **known)


def test_downgrade_is_enabled_only_below_the_cluster_version() -> None:
    assert downgrade_to(["3.6.16"], "3.5.35", "3.6.0") == "3.5"
    assert downgrade_to(["3.6.16", "3.5.35"], "3.5.35", "3.5.0") == ""
    assert downgrade_to(["3.6.16"], "3.6.15", "3.6.0") == ""


def test_only_3_7_needs_log_entries_of_3_5_dropped() -> None:
    assert drops_log_of(["3.6.16"], "3.7.3") == "3.5"
    assert drops_log_of(["3.7.2", "3.7.3"], "3.7.3") == ""
    assert drops_log_of(["3.5.35"], "3.6.16") == ""


def test_versions_are_parsed_from_text_and_images() -> None:
    assert str(parse("3.7.0-rc.1")) == "3.7.0"
    assert parse("3.6").series == "3.6"
    assert of_image("registry.example.com:5000/etcd:v3.6.16") == "3.6.16"
    assert of_image("registry.example.com:5000/etcd@sha256:0") == ""
    with pytest.raises(ValueError, match="is not an etcd version"):
        parse("latest")


def test_options_are_renamed_for_each_version() -> None:
    old = {"experimental-corrupt-check-time": "1h", "experimental-initial-corrupt-check": "true", "pre-vote": "true"}
    new = {"corrupt-check-time": "1h", "feature-gates": "InitialCorruptCheck=true", "pre-vote": "true"}
    assert renamed(old, "3.5.35") == renamed(new, "3.5.35") == old
    for version in ("3.6.16", "3.7.3"):
        assert renamed(old, version) == renamed(new, version) == new


def test_options_that_a_version_does_not_know_are_left_out() -> None:
    assert renamed({"log-format": "json", "feature-gates": "PriorityRequest=true"}, "3.5.35") == {}
