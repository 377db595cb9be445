"""Containers that Jobs of backups and restores are built from: a playbook of ours, or etcdutl; and what each needs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ..api.backup import Destination
from ..api.cluster import Cluster
from ..kube import quantity
from ..kube.jobs import Parts, container, only_file, secret, volume
from ..kube.manifest import Manifest
from ..kube.security import TLS_KEYS

_PLAYBOOKS = "/opt/ansible/collections/ansible_collections/etcdops/etcd/playbooks"
_REPORT = "/dev/termination-log"
SCRATCH = "/scratch"
CLAIM = "/claim"
SNAPSHOT = f"{SCRATCH}/snapshot.db"
_LARGEST = "10Gi"  # etcd recommends 8 GiB at most
_TLS = "/etc/etcdops/etcd"
_S3_CA = "/etc/etcdops/s3"
_ENCRYPTION = "/etc/etcdops/encryption"
# Freed memory goes back at once: a snapshot passes through memory in pieces of a megabyte and more.
_MALLOC = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}


def scratch(cluster: Cluster) -> Parts:
    """A folder for the plain snapshot of a cluster, on the node's disk."""
    return volume("scratch", {"emptyDir": {"sizeLimit": str(largest_snapshot(cluster))}}, SCRATCH)


def scratch_snapshot() -> Parts:
    """The plain snapshot alone, for a container of another image than ours."""
    return only_file("scratch", SCRATCH, SNAPSHOT)


def claim_snapshot(path: str) -> Parts:
    """A snapshot on a PVC, and nothing else that the PVC has."""
    return only_file("claim", CLAIM, path)


def largest_snapshot(cluster: Cluster) -> int:
    """The bytes that a plain snapshot may have. Volumes may be larger than spec.storage.size asks for."""
    sizes = [_LARGEST, cluster.storage.size, str(cluster.options.get("quotaBackendBytes", 0))]
    return int(max(map(quantity.parse, sizes)))


def claim(name: str, path: str = CLAIM, *, read_only: bool = False) -> Parts:
    return volume("claim", {"persistentVolumeClaim": {"claimName": name}}, path, read_only=read_only)


def store(destination: Destination, *, read_only: bool = False) -> Parts:
    """What a container needs to reach a destination."""
    if destination.claim:
        return claim(destination.claim.name, read_only=read_only)
    s3 = destination.s3
    assert s3  # noqa: S101
    env: dict[str, Any] = {"SNAPSHOT_S3_PATH_STYLE": str(s3.path_style).lower()}
    env |= {"AWS_ENDPOINT_URL_S3": s3.endpoint} if s3.endpoint else {}
    env |= {"AWS_REGION": s3.region} if s3.region else {}
    env |= {"SNAPSHOT_S3_NODE_CREDENTIALS": "true"} if s3.node_credentials else {}
    found = Parts()
    if s3.credentials_secret:
        for variable, key in (("AWS_ACCESS_KEY_ID", "accessKeyID"), ("AWS_SECRET_ACCESS_KEY", "secretAccessKey")):
            env[variable] = {"secretKeyRef": {"name": s3.credentials_secret, "key": key}}
    if s3.ca_secret:
        env["AWS_CA_BUNDLE"] = f"{_S3_CA}/ca.crt"
        found = secret("s3-ca", s3.ca_secret, _S3_CA, ["ca.crt"])
    return found + Parts(env)


def path_in_pod(destination: Destination, name: str) -> str:
    """The location of a snapshot as a module in the pod takes it."""
    place = destination.place(name)
    return place if destination.s3 else place.replace(f"claim://{destination.claim.name}", CLAIM)  # type: ignore[union-attr]


def in_words(destination: Destination, text: str, encryption_secret: str = "") -> str:
    """What a Job reported, with locations and keys as the user knows them."""
    text = re.sub(rf"{_ENCRYPTION}/(\w+)", rf"key \1 of Secret {encryption_secret}", text)
    return text.replace(f"{CLAIM}/", f"claim://{destination.claim.name}/") if destination.claim else text


def encryption(secret_name: str) -> Parts:
    if not secret_name:
        return Parts()
    return secret("encryption", secret_name, _ENCRYPTION) + Parts({"SNAPSHOT_KEYS": _ENCRYPTION})


def etcd_client(cluster: Cluster, pods: Sequence[str]) -> Parts:
    """What a container needs to talk to these members, in this order."""
    found = Parts({"ETCDCTL_ENDPOINTS": ",".join(cluster.client_url(pod) for pod in pods)})
    if not cluster.tls.enabled:
        return found
    names = {"ETCDCTL_CACERT": "ca.crt", "ETCDCTL_CERT": "tls.crt", "ETCDCTL_KEY": "tls.key"}
    files = {variable: f"{_TLS}/{file}" for variable, file in names.items()}
    return found + secret("etcd-tls", cluster.secret("operator"), _TLS, TLS_KEYS) + Parts(files)


def worker(name: str, image: str, playbook: str, parts: Parts) -> Manifest:
    """A container of the operator's own image that runs a playbook and reports by its termination message."""
    parts = parts + Parts({"SNAPSHOT_REPORT": _REPORT, "USER": "ansible", **_MALLOC})
    # Not the warm runner's: a resident Python does not help a single play.
    command = ["/usr/local/bin/ansible-playbook", f"{_PLAYBOOKS}/{playbook}.yml"]
    return container(name, image, command, parts + volume("tmp", {"emptyDir": {}}, "/tmp"))  # noqa: S108


def etcdutl(name: str, image: str, arguments: Sequence[str], parts: Parts) -> Manifest:
    """A container of etcd's own image, which has no shell."""
    return container(name, image, ["/usr/local/bin/etcdutl", *arguments], parts)


def snapshot_status(log: str | None) -> dict[str, Any]:
    """What `etcdutl snapshot status --write-out=json` said of a snapshot; nothing, when it can't be made out."""
    for line in reversed((log or "").splitlines()):
        try:
            said = json.loads(line)
            found = {"revision": said["revision"], "keys": said["totalKey"], "hash": f"{said['hash']:x}"}
        except (ValueError, KeyError, TypeError):  # something else that it had to say
            continue
        return found | ({"etcdVersion": said["version"]} if said.get("version") else {})
    return {}
