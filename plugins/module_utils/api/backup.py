"""The spec of an EtcdBackup as a dataclass, and the destinations of snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..kube.manifest import Manifest
from ..kube.ownership import API_VERSION

BACKUP_LABEL = "etcdops.dev/backup"
BACKUP_UID = "etcdops.dev/backup-uid"  # on a PVC: the EtcdBackup that it was made for
SCHEDULE_LABEL = "etcdops.dev/schedule"
SCHEDULE_UID = "etcdops.dev/schedule-uid"
DUE = "etcdops.dev/due"  # an annotation: when a run of a schedule was due
REQUESTED_BY = "etcdops.dev/requested-by"  # an annotation
SKIP_CLEANUP = "etcdops.dev/skip-cleanup"  # an annotation: delete the EtcdBackup, though its data can't be deleted

_LONGEST_NAME = 253  # as the CRD allows it in the status


@dataclass(frozen=True)
class S3Store:
    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""
    path_style: bool = False
    credentials_secret: str = ""
    node_credentials: bool = False
    ca_secret: str = ""


@dataclass(frozen=True)
class ClaimStore:
    name: str
    path: str = ""  # a folder in it
    own: bool = False  # made by the operator for one snapshot
    size: str = ""  # of one that the operator makes; by default that of the cluster's volumes
    class_name: str | None = None


@dataclass(frozen=True)
class Destination:
    """Exactly one of them is set; the CRD validates that."""

    s3: S3Store | None = None
    claim: ClaimStore | None = None

    def place(self, name: str) -> str:
        """The location of a snapshot, for people."""
        if self.s3:
            return f"s3://{self.s3.bucket}/{_joined(self.s3.prefix, name)}"
        assert self.claim  # noqa: S101
        return f"claim://{self.claim.name}/{_joined(self.claim.path, name)}"

    def __str__(self) -> str:
        return self.place("").rstrip("/")


@dataclass(frozen=True)
class Backup:
    """One EtcdBackup."""

    name: str
    namespace: str
    uid: str
    generation: int
    cluster: str
    destination: Destination
    compress: bool = False
    encryption_secret: str = ""
    delete_data: bool = False
    deadline: timedelta = timedelta(hours=1)
    deleting: bool = False
    skip_cleanup: bool = False
    requested_by: str = ""

    @property
    def file(self) -> str:
        """Its name at the destination. The uid makes it unique across all clusters."""
        suffix = (".zst" if self.compress else "") + (".age" if self.encryption_secret else "")
        return f"{self.cluster}/{self.name}-{self.uid[:8]}.db{suffix}"

    @property
    def location(self) -> str:
        return self.destination.place(self.file)

    @property
    def own_claim(self) -> str:
        """The PVC that is made for this snapshot alone; "" when it is kept elsewhere."""
        claim = self.destination.claim
        return claim.name if claim and claim.own else ""


def _joined(folder: str, name: str) -> str:
    return f"{folder.strip('/')}/{name}" if folder.strip("/") else name


def parse_destination(spec: Manifest, name: str) -> Destination:
    """The destination of an EtcdBackup of that name."""
    if claim := spec.get("claim"):
        return Destination(claim=ClaimStore(claim["name"], claim.get("path", "")))
    if "newClaim" in spec:
        new = spec["newClaim"]
        own = ClaimStore(f"{name}-snapshot", own=True, size=new.get("size", ""), class_name=new.get("className"))
        return Destination(claim=own)
    s3 = spec["s3"]
    return Destination(
        s3=S3Store(
            bucket=s3["bucket"],
            prefix=s3.get("prefix", ""),
            endpoint=s3.get("endpoint", ""),
            region=s3.get("region", ""),
            path_style=s3.get("pathStyle", False),
            credentials_secret=s3.get("credentialsSecret", ""),
            node_credentials=s3.get("nodeCredentials", False),
            ca_secret=s3.get("caSecret", ""),
        )
    )


def parse(resource: Manifest) -> Backup:
    """The EtcdBackup that an API object declares."""
    meta, spec = resource["metadata"], resource["spec"]
    return Backup(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta["uid"],
        generation=meta.get("generation", 1),
        cluster=spec["cluster"],
        destination=parse_destination(spec["destination"], meta["name"]),
        compress=spec.get("compression", "None") == "Zstd",
        encryption_secret=spec.get("encryption", {}).get("secret", ""),
        delete_data=spec.get("deletion", {}).get("storage") == "Delete",
        deadline=timedelta(seconds=spec.get("deadlineSeconds", 3600)),
        deleting="deletionTimestamp" in meta,
        skip_cleanup=(meta.get("annotations") or {}).get(SKIP_CLEANUP) == "true",
        requested_by=_requested_by(meta),
    )


def manifest(namespace: str, name: str, requested_by: str, spec: Manifest, **meta: Any) -> Manifest:
    """An EtcdBackup that the operator creates for another object such as EtcdCluster/example, which it outlives."""
    annotations = {REQUESTED_BY: requested_by, **meta.pop("annotations", {})}
    metadata = {"namespace": namespace, "name": name, "annotations": annotations, **meta}
    return {"apiVersion": API_VERSION, "kind": "EtcdBackup", "metadata": metadata, "spec": spec}


def _requested_by(meta: dict[str, Any]) -> str:
    """The object that it was created for, otherwise the program that created it."""
    if named := (meta.get("annotations") or {}).get(REQUESTED_BY):
        return str(named)[:_LONGEST_NAME]
    makers = [entry for entry in meta.get("managedFields", []) if entry.get("manager") != "ansible-operator"]
    first: dict[str, Any] = min(makers, key=lambda entry: entry.get("time", ""), default={})
    return str(first.get("manager", ""))[:_LONGEST_NAME]


def ended_at(resource: Manifest) -> datetime:
    """When an EtcdBackup failed."""
    conditions = {each["type"]: each for each in resource.get("status", {}).get("conditions", [])}
    known = conditions.get("Failed", {}).get("lastTransitionTime") or resource["metadata"]["creationTimestamp"]
    return datetime.fromisoformat(known)
