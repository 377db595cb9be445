"""The spec of an EtcdRestore as a dataclass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..kube.manifest import Manifest
from . import backup
from .backup import Destination

DELETE_PREVIOUS_DATA = "etcdops.dev/delete-previous-data"  # an annotation: delete what was kept on the volumes


@dataclass(frozen=True)
class Snapshot:
    """The location of a snapshot, and what is known of it."""

    destination: Destination
    name: str
    encryption_secret: str = ""
    sha256: str = ""
    version: str = ""  # of the etcd that it was taken from, if known
    beside: Manifest = field(default_factory=dict)  # the destination of an EtcdBackup that is stored beside it

    @property
    def location(self) -> str:
        return self.destination.place(self.name)


@dataclass(frozen=True)
class Restore:
    """One EtcdRestore."""

    name: str
    namespace: str
    uid: str
    generation: int
    cluster: str
    in_place: bool
    created: str = ""  # when, as Kubernetes writes it
    backup: str = ""  # the EtcdBackup, if the source is one
    snapshot: Snapshot | None = None  # the source, if it is a location
    template: dict[str, Any] = field(default_factory=dict)  # the spec of a new EtcdCluster
    take_snapshot: bool = True
    delete_previous: bool = False  # the data from before the restore, although there is no copy of it
    deleting: bool = False


def parse(resource: Manifest) -> Restore:
    """The EtcdRestore that an API object declares."""
    meta, spec = resource["metadata"], resource["spec"]
    in_place, new = spec.get("inPlace", {}), spec.get("newCluster", {})
    return Restore(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta["uid"],
        generation=meta.get("generation", 1),
        cluster=in_place.get("cluster") or new.get("name", ""),
        in_place=bool(in_place),
        created=meta.get("creationTimestamp", ""),
        backup=spec["source"].get("backup", ""),
        snapshot=_location(spec["source"]),
        template=new.get("spec", {}),
        take_snapshot=in_place.get("snapshot", "Take") == "Take",
        delete_previous=(meta.get("annotations") or {}).get(DELETE_PREVIOUS_DATA) == "true",
        deleting="deletionTimestamp" in meta,
    )


def of_backup(resource: Manifest) -> Snapshot:
    """The snapshot of an EtcdBackup that has succeeded."""
    made, status = backup.parse(resource), resource["status"]
    return Snapshot(
        destination=made.destination,
        name=made.file,
        encryption_secret=made.encryption_secret,
        sha256=status.get("sha256", ""),
        version=status.get("etcdVersion", ""),
        beside=resource["spec"]["destination"],
    )


def _location(source: Manifest) -> Snapshot | None:
    if claim := source.get("claim"):
        beside, name = {"claim": {"name": claim["name"]}}, claim["path"]
    elif s3 := source.get("s3"):
        beside, name = {"s3": {key: value for key, value in s3.items() if key != "key"}}, s3["key"]
    else:
        return None
    return Snapshot(
        destination=backup.parse_destination(beside, ""),
        name=name,
        encryption_secret=source.get("encryption", {}).get("secret", ""),
        sha256=source.get("sha256", ""),
        beside=beside,
    )
