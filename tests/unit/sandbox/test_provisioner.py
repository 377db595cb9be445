from __future__ import annotations

from typing import Any

import pytest

from sandbox import configs, provisioner

CLASSES = {
    "standard": configs.storage_class("standard", expandable=True),
    "other": {"metadata": {"name": "other"}, "provisioner": "somebody.else/disk"},
}


def _claim(**changes: Any) -> dict[str, Any]:
    spec = {
        "storageClassName": "standard",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    annotations = {"volume.kubernetes.io/selected-node": "node-2"}
    metadata = {"namespace": "default", "name": "data", "uid": "u-1", "annotations": annotations}
    return {"metadata": metadata | changes.pop("metadata", {}), "spec": spec | changes, "status": {}}


@pytest.mark.parametrize(
    ("claim", "wanted"),
    [
        (_claim(), True),
        (_claim(storageClassName="other"), False),
        (_claim(storageClassName="unknown"), False),
        (_claim(volumeName="pvc-u-1"), False),
        (_claim(metadata={"annotations": None}), False),
    ],
)
def test_a_claim_of_ours_gets_a_volume_once_its_node_is_known(claim: dict[str, Any], wanted: bool) -> None:
    assert provisioner.wants_volume(claim, CLASSES) is wanted


def test_a_volume_lies_on_the_chosen_node_and_is_reserved_for_its_claim() -> None:
    volume = provisioner.volume_for(_claim(), CLASSES["standard"])
    assert volume["spec"]["local"]["path"].endswith("/hosts/node-2/volumes/pvc-u-1")
    assert volume["spec"]["claimRef"]["uid"] == "u-1"
    term = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
    assert term["matchExpressions"][0]["values"] == ["node-2"]


def test_a_floating_volume_lies_on_no_node() -> None:
    volume = provisioner.volume_for(_claim(), configs.storage_class("floating", expandable=False, floats=True))
    assert "nodeAffinity" not in volume["spec"]
    assert provisioner.folder_of(volume) == provisioner.floating_path("pvc-u-1")


@pytest.mark.parametrize(("asked", "wanted"), [("1Gi", None), ("1024Mi", None), ("2Gi", "2Gi"), ("512Mi", None)])
def test_a_volume_only_grows(asked: str, wanted: str | None) -> None:
    volume = provisioner.volume_for(_claim(), CLASSES["standard"])
    claim = _claim(resources={"requests": {"storage": asked}})
    assert provisioner.wanted_capacity(claim, volume) == wanted


def test_only_our_own_released_volumes_are_freed() -> None:
    volume = provisioner.volume_for(_claim(), CLASSES["standard"])
    assert not provisioner.is_released(volume)
    released = volume | {"status": {"phase": "Released"}}
    assert provisioner.is_released(released)
    kept = released | {"spec": released["spec"] | {"persistentVolumeReclaimPolicy": "Retain"}}
    assert not provisioner.is_released(kept)
    assert not provisioner.is_released(released | {"metadata": {"name": "foreign"}})
