"""The spec of an EtcdCluster as a dataclass. The CRD has validated and defaulted it already."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

REPOSITORY = "gcr.io/etcd-development/etcd"

# Annotations of an EtcdCluster.
HELD_BY = "etcdops.dev/restore"  # the EtcdRestore that holds it: no member may run
MADE_BY = "etcdops.dev/restored-by"  # the uid of the EtcdRestore that its data comes from
RESTORED = "etcdops.dev/restored"  # the number of members that have the data of a snapshot to start with
SKIP_FINAL_SNAPSHOT = "etcdops.dev/skip-final-snapshot"  # delete it without spec.deletion.snapshot


@dataclass(frozen=True)
class Storage:
    type: Literal["Persistent", "Memory"] = "Persistent"
    size: str = "1Gi"
    class_name: str | None = None


@dataclass(frozen=True)
class TlsSpec:
    mode: Literal["Managed", "Provided", "Disabled"] = "Managed"
    server_secret: str = ""
    peer_secret: str = ""
    client_secret: str = ""

    @property
    def enabled(self) -> bool:
        return self.mode != "Disabled"


@dataclass(frozen=True)
class UpgradeSpec:
    allow_downgrade: bool = False
    snapshot: bool = True
    backup: dict[str, Any] = field(default_factory=dict)  # of the spec of the EtcdBackup
    keep_for: timedelta | None = None  # how long it is kept afterwards; None: until a person deletes it


@dataclass(frozen=True)
class Cluster:
    """One EtcdCluster: its identity and what it should be."""

    name: str
    namespace: str
    uid: str
    generation: int
    size: int
    version: str
    repository: str = REPOSITORY
    spec_image: str = ""  # by digest; of spec.version only
    paused: bool = False
    deleting: bool = False
    delete_storage: bool = False
    final_snapshot: dict[str, Any] = field(default_factory=dict)  # of the spec of an EtcdBackup; empty for none
    skip_final_snapshot: bool = False
    held_by: str = ""  # the EtcdRestore that holds it
    restored: int = 0  # the number of members that have the data of a snapshot to start with
    storage: Storage = Storage()
    tls: TlsSpec = TlsSpec()
    upgrade: UpgradeSpec = UpgradeSpec()
    options: dict[str, Any] = field(default_factory=dict)
    pod: dict[str, Any] = field(default_factory=dict)

    def image(self, version: str = "") -> str:
        """The image of an etcd version, by default of spec.version.

        spec.image is the image of spec.version only: others are expected in its repository.
        """
        if self.spec_image and version in ("", self.version):
            return self.spec_image
        repository = self.spec_image.partition("@")[0] or self.repository
        return f"{repository}:v{version or self.version}"

    @property
    def peer_service(self) -> str:
        return f"{self.name}-peers"

    @property
    def client_service(self) -> str:
        return f"{self.name}-client"

    @property
    def config_map(self) -> str:
        return f"{self.name}-config"

    @property
    def scheme(self) -> str:
        return "https" if self.tls.enabled else "http"

    @property
    def selector(self) -> str:
        """The label selector of what belongs to this cluster."""
        return f"etcdops.dev/cluster={self.name}"

    def secret(self, role: Literal["server", "peer", "client", "operator"]) -> str:
        """The Secret with ca.crt, tls.crt and tls.key for a role."""
        if self.tls.mode == "Provided":
            own = {"server": self.tls.server_secret, "peer": self.tls.peer_secret}
            return own.get(role, self.tls.client_secret)
        return f"{self.name}-{role}-tls"

    def pod_name(self, ordinal: int) -> str:
        return f"{self.name}-{ordinal}"

    def ordinal(self, pod: str) -> int | None:
        """The number in a pod's name; None when it is not a pod of this cluster."""
        number = pod.removeprefix(f"{self.name}-")
        return int(number) if number.isdecimal() and self.pod_name(int(number)) == pod else None

    def host(self, pod: str) -> str:
        """A member's name in DNS, without the cluster domain, which differs between clusters."""
        return f"{pod}.{self.peer_service}.{self.namespace}.svc"

    def peer_url(self, pod: str) -> str:
        return f"{self.scheme}://{self.host(pod)}:2380"

    def client_url(self, pod: str) -> str:
        return f"{self.scheme}://{self.host(pod)}:2379"


def parse(resource: dict[str, Any]) -> Cluster:
    """The EtcdCluster that an API object declares."""
    meta, spec = resource["metadata"], resource["spec"]
    storage, tls = spec.get("storage", {}), spec.get("tls", {})
    annotations = meta.get("annotations") or {}
    return Cluster(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta["uid"],
        generation=meta.get("generation", 1),
        size=spec["size"],
        version=spec["version"],
        repository=spec.get("repository", REPOSITORY),
        spec_image=spec.get("image", ""),
        paused=spec.get("paused", False),
        deleting="deletionTimestamp" in meta,
        delete_storage=spec.get("deletion", {}).get("storage") == "Delete",
        final_snapshot=spec.get("deletion", {}).get("snapshot") or {},
        skip_final_snapshot=annotations.get(SKIP_FINAL_SNAPSHOT) == "true",
        held_by=annotations.get(HELD_BY, ""),
        restored=_number(annotations.get(RESTORED, "")),
        storage=Storage(storage.get("type", "Persistent"), storage.get("size", "1Gi"), storage.get("className")),
        tls=TlsSpec(
            tls.get("mode", "Managed"),
            tls.get("serverSecret", ""),
            tls.get("peerSecret", ""),
            tls.get("clientSecret", ""),
        ),
        upgrade=_upgrade(spec.get("upgrade", {})),
        options=spec.get("options", {}),
        pod=spec.get("pod", {}),
    )


def _number(text: str) -> int:
    """The number of members that the operator wrote; anything else, also more than there can be, counts as 0."""
    return int(text) if len(text) == 1 and text in "123456789" else 0


def _upgrade(spec: dict[str, Any]) -> UpgradeSpec:
    snapshot = spec.get("snapshot", {})
    backup = {name: snapshot[name] for name in ("destination", "compression", "encryption") if name in snapshot}
    keep_for = snapshot.get("keepFor")
    return UpgradeSpec(
        spec.get("allowDowngrade", False),
        snapshot.get("mode", "Required") == "Required",
        {"destination": {"newClaim": {}}, **backup},
        _duration(keep_for) if keep_for else None,
    )


def _duration(text: str) -> timedelta:
    """From 90m, 12h or 7d; the CRD has checked it."""
    units = {"m": "minutes", "h": "hours", "d": "days"}
    return timedelta(**{units[text[-1]]: int(text[:-1])})
