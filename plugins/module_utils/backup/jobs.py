"""The Jobs of an EtcdBackup: one that takes and verifies the snapshot, one that deletes it; and the PVC of its own.

What their containers and volumes are: workers.py.
"""

from __future__ import annotations

from ..api.backup import BACKUP_LABEL, BACKUP_UID, Backup
from ..api.cluster import Cluster
from ..kube import jobs
from ..kube.manifest import Manifest
from ..kube.ownership import owner_reference
from . import workers
from .plan import Observation

_CLEANUP_DEADLINE = 300  # seconds for a Job that deletes a snapshot


def job_name(backup: Backup) -> str:
    return f"{backup.name}-backup"


def cleanup_name(backup: Backup) -> str:
    return f"{backup.name}-cleanup"


def owner(backup: Backup) -> Manifest:
    return owner_reference("EtcdBackup", backup.name, backup.uid)


def _labels(backup: Backup) -> dict[str, str]:
    # Not etcdops.dev/cluster: that label selects members.
    return {BACKUP_LABEL: backup.name}


def own_claim(backup: Backup, cluster: Cluster) -> Manifest:
    """A PVC for this snapshot alone. It has no owner: spec.deletion.storage decides whether it is deleted."""
    store = backup.destination.claim
    assert store  # noqa: S101
    class_name = store.class_name or cluster.storage.class_name
    labels = {**_labels(backup), BACKUP_UID: backup.uid, "app.kubernetes.io/managed-by": "etcdops"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": backup.namespace, "name": store.name, "labels": labels},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": store.size or cluster.storage.size}},
            **({"storageClassName": class_name} if class_name else {}),
        },
    }


def snapshot_job(backup: Backup, cluster: Cluster, observed: Observation, members: list[str]) -> Manifest:
    """First the stream, then etcdutl verifies what was stored."""
    needs = (
        workers.etcd_client(cluster, members)
        + workers.store(backup.destination)
        + workers.encryption(backup.encryption_secret)
        + workers.scratch(cluster)
    )
    # etcdutl reads a plain snapshot in place.
    where = workers.path_in_pod(backup.destination, backup.file)
    plain = backup.destination.claim is not None and not backup.compress and not backup.encryption_secret
    settings = {"SNAPSHOT_DEST": where, "SNAPSHOT_COMPRESS": str(backup.compress).lower(), "SNAPSHOT_CHECK": "false"}
    settings |= {} if plain else {"SNAPSHOT_COPY": workers.SNAPSHOT}
    save = workers.worker("save", observed.image, "etcd_backup", needs + jobs.Parts(settings))
    arguments = ["snapshot", "status", where if plain else workers.SNAPSHOT, "--write-out=json"]
    # What the member runs: an upgrade that waits for this snapshot may ask for an image that does not exist.
    running = observed.cluster_status.get("version") or cluster.version
    image = observed.images.get(members[0]) or cluster.image(running)
    # Its image is named by the user: it gets nothing but the snapshot.
    check = workers.etcdutl(
        "check", image, arguments, workers.claim_snapshot(where) if plain else workers.scratch_snapshot()
    )
    order = jobs.Order(
        namespace=backup.namespace,
        name=job_name(backup),
        owner=owner(backup),
        containers=(save, check),
        volumes=needs.volumes,
        deadline=int(backup.deadline.total_seconds()),
        labels=_labels(backup),
        affinity=jobs.near(observed.nodes.get(members[0], "")),
        pod=cluster.pod,
    )
    return jobs.manifest(order)


def cleanup_job(backup: Backup, observed: Observation) -> Manifest:
    """Delete what is at the destination, and what a killed upload left."""
    needs = workers.store(backup.destination)
    where = workers.path_in_pod(backup.destination, backup.file)
    work = workers.worker("delete", observed.image, "etcd_backup_delete", needs + jobs.Parts({"SNAPSHOT_DEST": where}))
    order = jobs.Order(
        namespace=backup.namespace,
        name=cleanup_name(backup),
        owner=owner(backup),
        containers=(work,),
        volumes=needs.volumes,
        deadline=_CLEANUP_DEADLINE,
        labels=_labels(backup),
        pod=observed.cluster.pod if observed.cluster else {},
        retries=2,
    )
    return jobs.manifest(order)
