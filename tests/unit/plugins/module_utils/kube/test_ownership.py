"""Whose an object is."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.ownership import (
    is_left_over,
    is_of_same_owner,
    is_owned,
    owner_reference,
)

OWNER = owner_reference("EtcdCluster", "e", "uid-1")
CLAIM = "etcdops.dev/cluster-uid"


def _object(*owners: Manifest, **meta: Any) -> Manifest:
    return {"metadata": {"name": "x", "ownerReferences": list(owners), **meta}}


def test_only_its_controller_owns_an_object() -> None:
    assert is_owned(_object(OWNER), "uid-1")
    assert not is_owned(_object({**OWNER, "controller": False}), "uid-1")
    assert not is_owned(_object({**OWNER, "uid": "uid-2"}), "uid-1")
    assert not is_owned({"metadata": {"name": "x"}}, "uid-1")
    assert not is_owned({"metadata": {"name": "x"}}, "")


def test_object_of_an_earlier_cluster_of_this_name_is_left_over() -> None:
    assert is_left_over(_object({**OWNER, "uid": "uid-0"}), OWNER)
    assert not is_left_over(_object(OWNER), OWNER)
    for other in ({"name": "f"}, {"kind": "EtcdBackup"}, {"apiVersion": "apps/v1"}):
        assert not is_left_over(_object({**OWNER, "uid": "uid-0", **other}), OWNER)


@pytest.mark.parametrize(
    ("wanted", "live", "same"),
    [
        (_object(OWNER), _object(OWNER), True),
        (_object(OWNER), _object(), False),
        (_object(OWNER), _object({**OWNER, "uid": "uid-2"}), False),
        (_object(labels={CLAIM: "uid-1"}), _object(labels={CLAIM: "uid-1", "more": "yes"}), True),
        (_object(labels={CLAIM: "uid-1"}), _object(labels={CLAIM: "uid-2"}), False),
        (_object(labels={CLAIM: "uid-1"}), _object(), False),
        (_object(annotations={"etcdops.dev/requested-by": "EtcdCluster/e"}), _object(), False),
        (_object(), _object(OWNER), True),  # a part of an object names no owner
    ],
)
def test_same_owner(wanted: Manifest, live: Manifest, same: bool) -> None:
    assert is_of_same_owner(wanted, live) is same
