"""The default quota follows from the size of the volumes, and never stops the writes of members that have none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, Storage
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import member_config
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import FormCluster, UpdateObjects
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.quota import default, with_default

from .builders import CLUSTER, action_of, claim, nothing, planned, running

NONE = replace(CLUSTER, options={})


def _quota(cluster: Cluster, *capacities: str, files: dict[str, str] | None = None) -> int | None:
    claims = [
        claim(number, requested=cluster.storage.size, capacity=capacity) for number, capacity in enumerate(capacities)
    ]
    found = with_default(cluster, files or {}, claims).options.get("quotaBackendBytes")
    return found if found is None else int(found)


@pytest.mark.parametrize(
    ("size", "quota"), [(1 << 30, 448 << 20), (10 << 30, 5056 << 20), (100 << 30, 8 << 30), (64 << 20, 16 << 20)]
)
def test_half_of_what_the_log_leaves(size: int, quota: int) -> None:
    assert default(size) == quota


def test_first_start_has_the_default() -> None:
    (config_map,) = (
        one for one in action_of(planned(NONE, nothing()), FormCluster).objects if one["kind"] == "ConfigMap"
    )
    assert all("quota-backend-bytes: 469762048\n" in text for text in config_map["data"].values())


def test_quota_of_the_user_is_left_alone() -> None:
    assert with_default(replace(CLUSTER, options={"quotaBackendBytes": "7Gi"}), {}, []).options == {
        "quotaBackendBytes": "7Gi"
    }


def test_members_that_started_without_a_quota_stay_without() -> None:
    without = member_config.formed(NONE, "3.6.16", ["e-0", "e-1", "e-2"], {})
    assert _quota(NONE, "1Gi", files=without) is None


def test_quota_follows_the_smallest_volume_and_not_the_wish() -> None:
    larger, files = replace(NONE, storage=Storage(size="2Gi")), member_config.formed(CLUSTER, "3.6.16", ["e-0"], {})
    assert _quota(larger, "2Gi", "1Gi", "2Gi", files=files) == 448 << 20
    assert _quota(larger, "2Gi", "2Gi", "2Gi", files=files) == 960 << 20
    assert _quota(larger, "2Gi", "", "10Gi", files=files) == 960 << 20  # one is not bound yet, one was rounded up


def test_smaller_spec_does_not_stop_writes() -> None:
    """PVCs never shrink, so neither does the quota."""
    claims = [claim(0, requested="10Gi", capacity="10Gi")]
    assert with_default(NONE, {}, claims).options == {"quotaBackendBytes": default(10 << 30)}


def _grown() -> Observation:
    observed = running()
    claims = tuple(replace(one, requested="2Gi", capacity="2Gi") for one in observed.claims)
    return replace(observed, claims=claims)


def test_larger_volumes_are_followed_by_a_rollout() -> None:
    plan = planned(replace(NONE, storage=Storage(size="2Gi")), _grown())
    assert plan.phase is Phase.RESTARTING
    files = next(one for one in action_of(plan, UpdateObjects).objects if one["kind"] == "ConfigMap")["data"]
    assert all(f"quota-backend-bytes: {960 << 20}\n" in text for text in files.values())


def test_quota_never_shrinks_for_a_new_member_whose_volume_has_yet_to_grow() -> None:
    files = member_config.formed(replace(NONE, options={"quotaBackendBytes": 8 << 30}), "3.6.16", ["e-0"], {})
    assert _quota(replace(NONE, storage=Storage(size="20Gi")), "20Gi", "1Gi", files=files) == 8 << 30
