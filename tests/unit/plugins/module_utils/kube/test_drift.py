from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.drift import differs


@pytest.mark.parametrize(
    ("desired", "live"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),  # another manager owns b
        ({"a": {"b": [1]}}, {"a": {"b": [1], "c": 3}}),
        ({"storage": "1024Mi"}, {"storage": "1Gi"}),
        ([{"name": "a"}], [{"name": "a", "image": "x"}]),
        ({"cpu": 1}, {"cpu": "1000m"}),
    ],
)
def test_live_object_that_has_all_that_is_desired_does_not_differ(desired: Any, live: Any) -> None:
    assert not differs(desired, live)


@pytest.mark.parametrize(
    ("desired", "live"),
    [
        ({"a": 1}, {}),
        ({"a": 1}, None),
        ({"a": {"b": 1}}, {"a": 1}),
        ({"storage": "2Gi"}, {"storage": "1Gi"}),
        ([1, 2], [1]),
        ([1], [1, 2]),
        ([1], {"0": 1}),
        ({"image": "a:1"}, {"image": "a:2"}),
        (True, False),
    ],
)
def test_live_object_that_lacks_something_differs(desired: Any, live: Any) -> None:
    assert differs(desired, live)
