"""The effects that roles have on objects: apply, create, delete. Each deletion names the object it was decided on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal

from .client import Asked, Kube
from .manifest import Manifest

How = Literal["", "force", "orphan"]


def apply_object(api: Kube, manifest: Manifest, before: Manifest | None, *, dry_run: bool = False) -> bool:
    """Apply one object; tells whether it changed. `before` is the object as it was."""
    after = api.apply(manifest, dry_run=dry_run)
    return before is None or _content(before) != _content(after)


def existing(api: Kube, objects: Sequence[Manifest]) -> list[Manifest | None]:
    """Each object as it is now; None where it does not exist."""
    metas = [(manifest["kind"], manifest["metadata"]) for manifest in objects]
    asked = [Asked(kind, meta["namespace"], meta["name"]) for kind, meta in metas]
    return [found[0] if found else None for found in api.read(asked)]


def delete_refs(
    api: Kube, asked: Asked, refs: Sequence[Mapping[str, str]], how: How = "", *, dry_run: bool = False
) -> list[str]:
    """Delete these objects, each only if it still has this uid; returns the names of those deleted."""
    named = {ref["name"]: ref["uid"] for ref in refs}
    found = chain.from_iterable(api.read([replace(asked, name=name) for name in named]))
    same = [each for each in found if each["metadata"]["uid"] == named[each["metadata"]["name"]]]
    return _delete(api, [(asked.kind, each) for each in same], how, dry_run=dry_run)


def delete_found(api: Kube, asked: Sequence[Asked], how: How = "", *, dry_run: bool = False) -> list[str]:
    """Delete whatever is found by name or selector; returns the names of those deleted."""
    answers = zip(asked, api.read(asked), strict=True)
    return _delete(api, [(one.kind, each) for one, found in answers for each in found], how, dry_run=dry_run)


def _delete(api: Kube, found: Sequence[tuple[str, Manifest]], how: How, *, dry_run: bool) -> list[str]:
    deleted = []
    for kind, manifest in found:  # an item of a list has no kind of its own
        meta = manifest["metadata"]
        if "deletionTimestamp" in meta and how != "force":
            continue
        if dry_run or api.delete(kind, meta["namespace"], meta["name"], meta["uid"], how):
            deleted.append(meta["name"])
    return deleted


def _content(manifest: Manifest) -> Manifest:
    """What is compared, because a dry run gives no new resourceVersion."""
    meta = {
        key: value for key, value in manifest["metadata"].items() if key not in ("managedFields", "resourceVersion")
    }
    return {**manifest, "metadata": meta}
