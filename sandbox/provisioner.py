"""Storage of the sandbox: `local` PersistentVolumes on the node that the scheduler chose.

Unlike hostPath, local volumes get the pod's fsGroup, tie a PVC to its node as real disks do, and can be expanded.
A floating volume can be used on every node, as disks in a cloud or of a storage network can: all nodes of the sandbox
see the same folders.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes import client, config, watch
from kubernetes.utils.quantity import parse_quantity

from . import configs, layout
from .configs import PROVISIONER

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def volume_path(node: str, volume: str) -> Path:
    return layout.STATE / "hosts" / node / "volumes" / volume


def floating_path(volume: str) -> Path:
    return layout.STATE / "volumes" / volume


def folder_of(volume: dict[str, Any]) -> Path:
    spec = volume["spec"]
    return Path((spec.get("local") or spec["hostPath"])["path"])


def wants_volume(claim: dict[str, Any], classes: dict[str, dict[str, Any]]) -> bool:
    """Whether an unbound PVC has one of our StorageClasses and a node that the scheduler chose."""
    ours = classes.get(claim["spec"].get("storageClassName", ""), {}).get("provisioner") == PROVISIONER
    annotations = claim["metadata"].get("annotations") or {}
    return ours and not claim["spec"].get("volumeName") and _SELECTED_NODE in annotations


def volume_for(claim: dict[str, Any], storage_class: dict[str, Any]) -> dict[str, Any]:
    """The PersistentVolume for a PVC."""
    meta = claim["metadata"]
    name, node = f"pvc-{meta['uid']}", meta["annotations"][_SELECTED_NODE]
    floats = (storage_class.get("parameters") or {}).get(configs.FLOATING) == "true"
    place = {"hostPath": {"path": str(floating_path(name))}} if floats else on_node(node, name)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {_PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": storage_class["metadata"]["name"],
            **place,
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
        },
    }


def on_node(node: str, volume: str) -> dict[str, Any]:
    """The fields of a PersistentVolume's spec that place it in its folder on a node."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {
        "local": {"path": str(volume_path(node, volume))},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }


def wanted_capacity(claim: dict[str, Any], volume: dict[str, Any]) -> str | None:
    """The size that a bound PVC requests beyond its volume's capacity; the API server allows it only if expandable."""
    wanted: str = claim["spec"]["resources"]["requests"]["storage"]
    return wanted if _quantity(wanted) > _quantity(volume["spec"]["capacity"]["storage"]) else None


def is_released(volume: dict[str, Any]) -> bool:
    """Whether one of our volumes must be deleted because its PVC is gone."""
    return (
        (volume["metadata"].get("annotations") or {}).get(_PROVISIONED_BY) == PROVISIONER
        and volume.get("status", {}).get("phase") == "Released"
        and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    )


def _quantity(text: str) -> int:
    return int(parse_quantity(text))


class Provisioner:
    """Watches PVCs and volumes, and acts as the functions above decide."""

    def __init__(self, api: client.CoreV1Api, storage: client.StorageV1Api) -> None:
        self.api = api
        self.storage = storage
        self.plain = api.api_client.sanitize_for_serialization

    def run(self) -> None:
        """Watch PVCs and volumes concurrently until one watch fails."""
        loops = (
            (self.api.list_persistent_volume_claim_for_all_namespaces, self.see_claim),
            (self.api.list_persistent_volume, self.see_volume),
        )
        pool = ThreadPoolExecutor(len(loops))
        done, _ = wait([pool.submit(self.follow, *loop) for loop in loops], return_when=FIRST_EXCEPTION)
        for future in done:
            print(f"failed: {future.exception()!r}", flush=True)
        os._exit(1)  # init.py restarts this process, which lists everything again

    def follow(self, list_all: Callable[..., Any], see: Callable[[dict[str, Any]], None]) -> None:
        while True:  # a watch ends after a minute; each round lists everything again
            listed = list_all()
            for item in self.plain(listed)["items"]:
                see(item)
            version = listed.metadata.resource_version
            for event in watch.Watch().stream(list_all, resource_version=version, timeout_seconds=60):
                if event["type"] in ("ADDED", "MODIFIED"):
                    see(event["raw_object"])

    def see_claim(self, claim: dict[str, Any]) -> None:
        classes = {c["metadata"]["name"]: c for c in self.plain(self.storage.list_storage_class())["items"]}
        if wants_volume(claim, classes):
            self.make(claim, classes[claim["spec"]["storageClassName"]])
        elif claim.get("status", {}).get("phase") == "Bound":
            self.expand(claim)

    def make(self, claim: dict[str, Any], storage_class: dict[str, Any]) -> None:
        volume = volume_for(claim, storage_class)
        path = folder_of(volume)
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o777)
        with _unless(409):
            self.api.create_persistent_volume(volume)
            print(f"created {path}", flush=True)

    def expand(self, claim: dict[str, Any]) -> None:
        with _unless(404):
            volume = self.plain(self.api.read_persistent_volume(claim["spec"]["volumeName"]))
            name, capacity = volume["metadata"]["name"], wanted_capacity(claim, volume)
            if capacity:
                self.api.patch_persistent_volume(name, {"spec": {"capacity": {"storage": capacity}}})
                print(f"expanded {name} to {capacity}", flush=True)

    def see_volume(self, volume: dict[str, Any]) -> None:
        if not is_released(volume):
            return
        shutil.rmtree(folder_of(volume), ignore_errors=True)
        with _unless(404):
            self.api.delete_persistent_volume(volume["metadata"]["name"])
            print(f"deleted {folder_of(volume)}", flush=True)


@contextmanager
def _unless(status: int) -> Iterator[None]:
    """Ignore this refusal: somebody was faster, or an event is older than what there is now."""
    try:
        yield
    except client.ApiException as error:
        if error.status != status:
            raise


def main() -> None:
    config.load_kube_config(str(layout.kubeconfig()))
    Provisioner(client.CoreV1Api(), client.StorageV1Api()).run()


if __name__ == "__main__":
    main()
