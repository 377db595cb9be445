"""A Kubernetes object as plain data. Nothing here talks to a server, so pure code may import it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Manifest = dict[str, Any]
Manifests = list[Manifest]

# A change of the status changes the resourceVersion, but not the generation, which not all kinds have.
_IDENTITY = ("uid", "generation", "resourceVersion")


def display(manifest: Manifest) -> str:
    """The kind and the name, for messages."""
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def based_on(manifest: Manifest, live: Manifest | None) -> Manifest:
    """The manifest with the condition that the object is still this one, or that there is still none."""
    known = {name: live["metadata"][name] for name in _IDENTITY if name in live["metadata"]} if live else {"uid": ""}
    return {**manifest, "metadata": {**manifest["metadata"], **known}}


def unconditional(manifest: Manifest) -> Manifest:
    """The manifest without that condition."""
    return without(manifest, _IDENTITY)


def without(manifest: Manifest, names: Sequence[str]) -> Manifest:
    """The manifest without these fields of its metadata."""
    meta = {key: value for key, value in manifest["metadata"].items() if key not in names}
    return {**manifest, "metadata": meta}
