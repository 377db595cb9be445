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


def test_running_cluster_without_progress_is_settled() -> None:
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
def test_cluster_with_work_left_is_not_settled(changes: dict[str, Any]) -> None:
    assert not clusters.is_settled(_resource(**changes))


def test_cluster_without_status_is_neither_available_nor_observed() -> None:
    created = clusters.small("bench-x", "one")
    created["metadata"]["generation"] = 1
    assert not clusters.is_available(created)
    assert not clusters.is_observed(created)


def test_spec_change_alternates_deletion_storage() -> None:
    resource = _resource()
    first = clusters.with_changed_spec(resource)
    assert first["spec"] == {"deletion": {"storage": "Delete"}}
    resource["spec"] |= first["spec"]
    assert clusters.with_changed_spec(resource)["spec"] == {"deletion": {"storage": "Keep"}}
    assert first["metadata"] == {"namespace": "bench-x", "name": "one"}


def test_annotation_does_not_change_the_spec() -> None:
    annotated = clusters.annotated("bench-x", "one", "42")
    assert "spec" not in annotated
    assert annotated["metadata"]["annotations"] == {"etcdops.dev/bench": "42"}


def test_clusters_outside_bench_namespaces_are_unrelated() -> None:
    found = [_resource(), {"metadata": {"namespace": "default", "name": "example"}}]
    assert clusters.unrelated(found) == ["default/example"]
