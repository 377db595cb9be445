"""Which version can become which."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.upgrade_path import downgrade_to, drops_log_of, refusal


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
