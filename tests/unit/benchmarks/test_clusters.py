from __future__ import annotations

from typing import Any

import pytest

from benchmarks import clusters


def _resource(**changes: Any) -> dict[str, Any]:
    status = {
        "phase": "Running",
        "observedGeneration": 2,
        "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "False"}],
    }
    return {
        "metadata": {"namespace": "bench-x", "name": "one", "generation": 2},
        "spec": {"size": 1},
        "status": status | changes,
    }


def test_settled_means_that_nothing_is_left_to_do() -> None:
    assert clusters.is_settled(_resource())
    assert clusters.is_available(_resource())


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": "Bootstrapping"},
        {"observedGeneration": 1},
        {"conditions": []},
        {"conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}]},
        {"conditions": [{"type": "Available", "status": "Unknown"}, {"type": "Progressing", "status": "False"}]},
    ],
)
def test_not_settled(changes: dict[str, Any]) -> None:
    assert not clusters.is_settled(_resource(**changes))


def test_a_cluster_without_status_is_neither_available_nor_observed() -> None:
    fresh = clusters.small("bench-x", "one")
    fresh["metadata"]["generation"] = 1
    assert not clusters.is_available(fresh)
    assert not clusters.is_observed(fresh)


def test_a_change_always_changes_the_spec_and_touches_nothing_else() -> None:
    resource = _resource()
    first = clusters.changed(resource)
    assert first["spec"] == {"deletion": {"storage": "Delete"}}
    resource["spec"] |= first["spec"]
    assert clusters.changed(resource)["spec"] == {"deletion": {"storage": "Keep"}}
    assert first["metadata"] == {"namespace": "bench-x", "name": "one"}


def test_a_touch_leaves_the_spec_alone() -> None:
    touched = clusters.touched("bench-x", "one", "42")
    assert "spec" not in touched
    assert touched["metadata"]["annotations"] == {"etcdops.dev/bench": "42"}


def test_only_what_no_measure_has_made_is_in_the_way() -> None:
    found = [_resource(), {"metadata": {"namespace": "default", "name": "example"}}]
    assert clusters.others(found) == ["default/example"]
