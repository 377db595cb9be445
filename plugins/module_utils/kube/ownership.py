"""Owner references of the objects that the operator makes for its custom resources."""

from __future__ import annotations

from .manifest import Manifest

API_VERSION = "etcdops.dev/v1beta1"


def owner_reference(kind: str, name: str, uid: str) -> Manifest:
    """A custom resource as the controller of an object: the object is deleted with it."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
