"""The Jobs of a restore: one that fetches, verifies and hands out the snapshot, and one for each member's volume."""

from __future__ import annotations

from dataclasses import dataclass

from ..api.cluster import Cluster
from ..api.restore import Restore, Snapshot
from ..backup import workers
from ..cluster.member_config import DATA_DIR
from ..kube import jobs
from ..kube.manifest import Manifest
from ..kube.ownership import owner_reference
from ..snapshots import transfer

RESTORE_LABEL = "etcdops.dev/restore"
_VOLUME = "/var/lib/etcd"
_TRANSFER = str(transfer.FOLDER)
_BUMP = 1_000_000_000  # more revisions than any client can have seen
_DEADLINE = 6 * 3600
_CLEANUP_DEADLINE = 600
_COLLECTIONS = "/opt/ansible/collections"


def source_name(restore: Restore) -> str:
    return f"{restore.name}-source"


def transfer_name(restore: Restore) -> str:
    return f"{restore.name}-transfer-{restore.uid[:8]}"


def member_name(restore: Restore, verb: str, ordinal: int) -> str:
    return f"{restore.name}-{verb}-{ordinal}"


def previous_data(restore: Restore) -> str:
    """The folder on each member's volume that its previous data is moved to."""
    return f"before-{restore.uid[:8]}"


def owner(restore: Restore) -> Manifest:
    return owner_reference("EtcdRestore", restore.name, restore.uid)


def source(restore: Restore, snapshot: Snapshot, cluster: Cluster, image: str, near: str = "") -> Manifest:
    """Fetch the snapshot, verify it, and hand it out to the members' Jobs until this Job is deleted.

    It runs beside the pod `near`, if it can. So does the Job of a snapshot that is taken before, perhaps to the same
    PVC, and some PVCs are for one node at a time.
    """
    needs = workers.store(snapshot.destination, read_only=True) + workers.encryption(snapshot.encryption_secret)
    scratch, certificates = workers.scratch(cluster), jobs.secret("transfer", transfer_name(restore), _TRANSFER)
    where = workers.path_in_pod(snapshot.destination, snapshot.name)
    settings = {
        "SNAPSHOT_SRC": where,
        "SNAPSHOT_SHA256": snapshot.sha256,
        "SNAPSHOT_COPY": workers.SNAPSHOT,
        "SNAPSHOT_MAX_SIZE": str(workers.largest_snapshot(cluster)),
    }
    fetch = workers.worker("fetch", image, "etcd_snapshot_fetch", needs + scratch + jobs.Parts(settings))
    arguments = ["snapshot", "status", workers.SNAPSHOT, "--write-out=json"]
    # The user names its image: it gets nothing but the snapshot.
    check = workers.etcdutl("check", cluster.image(), arguments, workers.scratch_snapshot())
    command = ["python3", "-m", transfer.__name__, workers.SNAPSHOT]
    hand_out = jobs.container(
        "serve", image, command, scratch + certificates + jobs.Parts({"PYTHONPATH": _COLLECTIONS})
    )
    order = jobs.Order(
        namespace=restore.namespace,
        name=source_name(restore),
        owner=owner(restore),
        containers=(fetch, check, hand_out),
        volumes=(needs + scratch + certificates).volumes,
        deadline=_DEADLINE,
        labels=_labels(restore),
        affinity=_beside(near) if near else {},
        pod=cluster.pod,
    )
    return jobs.manifest(order)


@dataclass(frozen=True)
class Source:
    """The pod that hands out the snapshot, the number of members, and the image of the Jobs."""

    address: str
    size: int
    image: str


def member(restore: Restore, cluster: Cluster, ordinal: int, source: Source) -> Manifest:
    """Make one member's data. The previous data is moved aside, on the same volume."""
    pods = [cluster.pod_name(each) for each in range(source.size)]
    pod = pods[ordinal]
    scratch, certificates = workers.scratch(cluster), jobs.secret("transfer", transfer_name(restore), _TRANSFER)
    volume = workers.claim(f"data-{pod}", _VOLUME)
    settings = _settings(restore, "restored") | {
        "RESTORE_SRC": transfer.url(source.address),
        "RESTORE_SNAPSHOT": workers.SNAPSHOT,
    }
    prepare = workers.worker(
        "prepare", source.image, "etcd_restore", volume + scratch + certificates + jobs.Parts(settings)
    )
    arguments = [
        "snapshot",
        "restore",
        workers.SNAPSHOT,
        f"--data-dir={DATA_DIR}",
        f"--name={pod}",
        f"--initial-cluster={','.join(f'{each}={cluster.peer_url(each)}' for each in pods)}",
        f"--initial-advertise-peer-urls={cluster.peer_url(pod)}",
        f"--initial-cluster-token={restore.uid}",  # another token, another cluster ID
        f"--bump-revision={_BUMP}",
        "--mark-compacted",
    ]
    make = workers.etcdutl("restore", cluster.image(), arguments, volume + workers.scratch_snapshot())
    order = jobs.Order(
        namespace=restore.namespace,
        name=member_name(restore, "member", ordinal),
        owner=owner(restore),
        containers=(prepare, make),
        volumes=(volume + scratch + certificates).volumes,
        deadline=_DEADLINE,
        labels=_labels(restore) | {"etcdops.dev/restore-member": cluster.name},
        # Spread like the members: a volume may be bound to the node where it is first used.
        affinity=_apart(cluster) | {key: cluster.pod["affinity"][key] for key in cluster.pod.get("affinity", {})},
        pod=cluster.pod,
        retries=2,
    )
    return jobs.manifest(order)


def after(restore: Restore, cluster: Cluster, verb: str, ordinal: int, image: str) -> Manifest:
    """What follows: put the previous data back (`putback`), or delete it (`tidy`)."""
    pod = cluster.pod_name(ordinal)
    volume = workers.claim(f"data-{pod}", _VOLUME)
    settings = _settings(restore, "put_back" if verb == "putback" else "kept")
    work = workers.worker(verb, image, "etcd_restore", volume + jobs.Parts(settings))
    order = jobs.Order(
        namespace=restore.namespace,
        name=member_name(restore, verb, ordinal),
        owner=owner(restore),
        containers=(work,),
        volumes=volume.volumes,
        deadline=_CLEANUP_DEADLINE if verb == "tidy" else _DEADLINE,
        labels=_labels(restore),
        affinity=_beside(pod),
        pod=cluster.pod,
        retries=5,
    )
    return jobs.manifest(order)


def _beside(pod: str) -> Manifest:
    """Prefer the node of that pod."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"statefulset.kubernetes.io/pod-name": pod}},
    }
    weighted = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def _settings(restore: Restore, state: str) -> dict[str, str]:
    found = {"RESTORE_STATE": state, "RESTORE_DATA_DIR": DATA_DIR}
    if restore.in_place:
        return found | {"RESTORE_OLD_DATA": f"{_VOLUME}/{previous_data(restore)}"}
    return found | {"RESTORE_OVERWRITE": "true"}  # the volume was made for this restore


def _labels(restore: Restore) -> dict[str, str]:
    return {RESTORE_LABEL: restore.name}


def _apart(cluster: Cluster) -> Manifest:
    def term(key: str, weight: int) -> Manifest:
        labels = {"etcdops.dev/restore-member": cluster.name}
        return {"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": {"matchLabels": labels}}}

    preferred = [term("kubernetes.io/hostname", 100), term("topology.kubernetes.io/zone", 50)]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
