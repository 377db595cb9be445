"""The effects that roles have on objects: apply, create, delete. Each names the object it was decided on.

An object that has changed in the meantime is not overwritten or deleted: another operator may have been faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal

from .client import Asked, Kube
from .errors import ChangedError, KubeError
from .manifest import Manifest, display, unconditional, without
from .ownership import is_of_same_owner

How = Literal["", "force", "orphan"]
# The option of a module that takes references to objects (plan.Ref).
REFS: dict[str, Any] = {
    "type": "list",
    "elements": "dict",
    "default": [],
    "options": {
        "name": {"type": "str", "required": True},
        "uid": {"type": "str", "required": True},
        "version": {"type": "str", "default": ""},
    },
}
_TRIES = 5


@dataclass
class Applied:
    """What was applied, as Kind/name; `refused` says why not all of it."""

    names: list[str] = field(default_factory=list)
    changed: bool = False
    refused: str = ""


def apply_all(api: Kube, objects: Sequence[Manifest], *, dry_run: bool = False) -> Applied:
    """Apply objects one after the other, until one is not what it was when this was decided."""
    done = Applied()
    found = iter(existing(api, [manifest for manifest in objects if not _is_new(manifest)]))
    for manifest in objects:
        name = f"{manifest['kind']}/{manifest['metadata']['name']}"
        try:
            before = None if _is_new(manifest) else next(found)
            done.changed |= apply_object(api, manifest, before, dry_run=dry_run)
        except ChangedError as error:
            done.refused = str(error)
            break
        done.names.append(name)
    return done


def create_all(api: Kube, objects: Sequence[Manifest], *, dry_run: bool = False) -> Applied:
    """Create the objects that do not exist, until the name of one belongs to something else."""
    done = Applied()
    for manifest in objects:
        if api.create(manifest, dry_run=dry_run):
            done.changed = True
        elif (found := existing(api, [manifest])[0]) and not is_of_same_owner(manifest, found):
            done.refused = str(_foreign(manifest))
            break
        done.names.append(f"{manifest['kind']}/{manifest['metadata']['name']}")
    return done


def apply_object(api: Kube, manifest: Manifest, before: Manifest | None, *, dry_run: bool = False) -> bool:
    """Apply one object; tells whether it changed. `before` is the object as it was a moment ago."""
    sent = unconditional(manifest)
    if not _identity(manifest) or (_identity(manifest) == ["uid"] and manifest["metadata"]["uid"]):
        _check(manifest, before)  # and with a uid, so does the API server
        after = api.apply(manifest, dry_run=dry_run)
        return before is None or _content(before) != _content(after)
    for _ in range(_TRIES):
        _check(manifest, before)
        if before is None:
            if api.create(sent, dry_run=dry_run) is None:
                raise _changed(manifest)
            return True
        try:
            if not dry_run:
                before = api.take_ownership(before)
            # The API server refuses it if anything was written since then.
            version = before["metadata"]["resourceVersion"]
            after = api.apply({**sent, "metadata": {**sent["metadata"], "resourceVersion": version}}, dry_run=dry_run)
        except KubeError as error:
            if error.status != 409:
                raise
            (before,) = existing(api, [manifest])  # its status may have changed, which is no reason to stop
            continue
        return _content(before) != _content(after)
    raise _changed(manifest)


def _is_new(manifest: Manifest) -> bool:
    """Whether it was decided on that there is no such object: it is created, and nothing needs to be read."""
    return bool(manifest["metadata"].get("uid") == "")


def _check(manifest: Manifest, before: Manifest | None) -> None:
    """Whether an object is still the one that a manifest is based on, and of the same owner."""
    found = before["metadata"] if before else {"uid": ""}
    if any(manifest["metadata"][name] != found.get(name) for name in _identity(manifest)):
        raise _changed(manifest)
    if before and not is_of_same_owner(manifest, before):
        raise _foreign(manifest)


def _identity(manifest: Manifest) -> list[str]:
    """The fields by which a manifest names the object that it is based on."""
    known = [name for name in ("uid", "generation", "resourceVersion") if name in manifest["metadata"]]
    return known[:2]  # a change of the status changes the resourceVersion, but not the generation


def _foreign(manifest: Manifest) -> ChangedError:
    return ChangedError(409, f"{display(manifest)} belongs to something else, so it is left alone")


def _changed(manifest: Manifest) -> ChangedError:
    return ChangedError(
        409, f"{display(manifest)} was changed by someone else in the meantime, so it is looked at again first"
    )


def existing(api: Kube, objects: Sequence[Manifest]) -> list[Manifest | None]:
    """Each object as it is now; None where it does not exist."""
    metas = [(manifest["kind"], manifest["metadata"]) for manifest in objects]
    asked = [Asked(kind, meta["namespace"], meta["name"]) for kind, meta in metas]
    return [found[0] if found else None for found in api.read(asked)]


def delete_refs(
    api: Kube, asked: Asked, refs: Sequence[Mapping[str, str]], how: How = "", *, dry_run: bool = False
) -> list[str]:
    """Delete these objects, each only if it still has this uid and version; returns the names of those deleted."""
    named = {ref["name"]: ref for ref in refs}
    found = chain.from_iterable(api.read([replace(asked, name=name) for name in named]))
    same = [each for each in found if _is_same(each, named[each["metadata"]["name"]])]
    return _delete(api, [(asked.kind, each) for each in same], how, dry_run=dry_run)


def _is_same(live: Manifest, ref: Mapping[str, str]) -> bool:
    meta = live["metadata"]
    version = ref.get("version")
    return bool(meta["uid"] == ref["uid"] and (not version or version == meta["resourceVersion"]))


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
        names = ("uid", "resourceVersion") if how == "force" else ("uid",)  # a pod that starts meanwhile is another
        same = {name: meta[name] for name in names}
        if dry_run or api.delete(kind, meta["namespace"], meta["name"], same, how):
            deleted.append(meta["name"])
    return deleted


def _content(manifest: Manifest) -> Manifest:
    """What is compared, because a dry run gives no new resourceVersion."""
    return without(manifest, ("managedFields", "resourceVersion"))
