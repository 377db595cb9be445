"""Whose an object is: that of the custom resource that controls it, or that it names if it has to outlive it.

effects.py refuses to change what belongs to something else.
"""

from __future__ import annotations

from .manifest import Manifest

API_VERSION = "etcdops.dev/v1beta1"
# What names the owner of an object that outlives it, and so has no controller.
_NAMES = {
    "labels": ("etcdops.dev/cluster-uid", "etcdops.dev/backup-uid", "etcdops.dev/schedule-uid"),
    "annotations": ("etcdops.dev/requested-by", "etcdops.dev/restored-by"),
}


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


def controller(manifest: Manifest) -> Manifest:
    """The reference to the controller of an object; empty when it has none."""
    references = manifest["metadata"].get("ownerReferences") or []
    return next((each for each in references if each.get("controller")), {})


def is_owned(manifest: Manifest, uid: str) -> bool:
    """Whether the custom resource with this uid controls the object."""
    return bool(uid) and controller(manifest).get("uid") == uid


def is_left_over(manifest: Manifest, owner: Manifest) -> bool:
    """Whether an earlier custom resource of the same kind and name controls the object: Kubernetes will delete it."""
    found = controller(manifest)
    same = all(found.get(name) == owner[name] for name in ("apiVersion", "kind", "name"))
    return same and found["uid"] != owner["uid"]


def is_of_same_owner(wanted: Manifest, live: Manifest) -> bool:
    """Whether an object that exists was made for the same custom resource as a manifest."""
    return _owners(wanted) <= _owners(live)


def _owners(manifest: Manifest) -> set[tuple[str, str]]:
    meta = manifest["metadata"]
    found = {
        (name, str((meta.get(field) or {})[name]))
        for field, names in _NAMES.items()
        for name in names
        if name in (meta.get(field) or {})
    }
    uid = controller(manifest).get("uid")
    return found | ({("controller", str(uid))} if uid else set())
