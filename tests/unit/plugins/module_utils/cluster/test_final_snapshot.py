from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.final_snapshot import decide, manifest, name_of

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
WANTED = {"destination": {"claim": {"name": "disk"}}, "compression": "Zstd"}


def _cluster(**annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ns", "name": "example", "uid": "12345678-9", "annotations": annotations},
        "spec": {"deletion": {"snapshot": WANTED}},
        "status": {"clusterID": "c1"},
    }


def _backup(phase: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"creationTimestamp": "2026-11-16T12:00:00Z"},
        "spec": {**WANTED, **spec},
        "status": {"phase": phase, "message": "The disk is full."},
    }


def test_it_is_taken_before_anything_is_deleted() -> None:
    cluster = _cluster()
    first = decide(cluster, None, NOW)
    assert (first.done, first.create) == (False, True)
    made = manifest(cluster)
    assert made["metadata"]["name"] == name_of(cluster) == "example-last-12345678"
    assert made["metadata"]["annotations"] == {"etcdops.dev/requested-by": "EtcdCluster/example"}
    assert made["spec"] == {"cluster": "example", **WANTED}
    running = decide(cluster, _backup("Running"), NOW)
    assert (running.done, running.create, running.again) == (False, False, False)
    assert "The disk is full." in running.message
    assert "etcdops.dev/let-go=true" in running.message
    assert decide(cluster, _backup("Succeeded"), NOW).done


def test_while_it_fails_nothing_is_deleted() -> None:
    failed = decide(_cluster(), _backup("Failed"), NOW)
    assert (failed.done, failed.again) == (False, False)
    assert "The disk is full." in failed.message
    assert decide(_cluster(), _backup("Failed"), NOW + timedelta(minutes=2)).again
    elsewhere = _backup("Failed", destination={"claim": {"name": "other"}})
    assert decide(_cluster(), elsewhere, NOW).again  # the user has put it right
    assert decide(_cluster(**{"etcdops.dev/let-go": "true"}), _backup("Failed"), NOW).done


@pytest.mark.parametrize(("annotations", "done"), [({}, True), ({"etcdops.dev/restored": "3"}, False)])
def test_what_never_had_data_needs_none(annotations: dict[str, str], done: bool) -> None:
    assert decide(_cluster(**annotations) | {"status": {}}, None, NOW).done is done


def test_none_is_wanted() -> None:
    assert decide(_cluster() | {"spec": {}}, None, NOW).done
