from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import RESTORED, parse


def _resource(annotations: dict[str, str] | None) -> dict[str, Any]:
    meta = {"name": "example", "namespace": "ns", "uid": "u", "annotations": annotations}
    return {"metadata": meta, "spec": {"size": 3, "version": "3.6.16"}}


@pytest.mark.parametrize(
    ("text", "number"),
    [("3", 3), ("0", 0), ("three", 0), ("", 0), ("-1", 0), ("1.5", 0), ("²", 0), ("9999999999", 0), ("9" * 5000, 0)],
)
def test_annotation_that_is_not_a_number_counts_as_zero(text: str, number: int) -> None:
    assert parse(_resource({RESTORED: text})).restored == number


def test_cluster_without_annotations_is_not_restored() -> None:
    assert parse(_resource(None)).restored == 0
