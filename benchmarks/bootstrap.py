"""Time from `kubectl apply` to a healthy cluster, compared with the same objects applied without the operator."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import certificates as secrets
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import manifests, member_config, pki

from .clusters import PREFIX, VERSION, cluster
from .figures import Figures, compared
from .kube import apply, namespace, seconds_until_healthy


def three_members(rounds: int = 3) -> Figures:
    """Measure one cluster with three members."""
    return _ratio("apply_to_healthy", ["bench"], size=3, rounds=rounds)


def ten_at_once(rounds: int = 3) -> Figures:
    """Measure ten single-member clusters that are applied at once."""
    return _ratio("ten_at_once", [f"bench-{number}" for number in range(10)], size=1, rounds=rounds)


def _ratio(what: str, names: list[str], *, size: int, rounds: int) -> Figures:
    where = PREFIX + what.replace("_", "-")
    by_hand, operator = [], []
    for _ in range(rounds):  # alternate, so that machine load affects both
        with namespace(where):
            by_hand.append(_by_hand(where, names, size))
        with namespace(where):
            operator.append(_operator(where, names, size))
    return compared(by_hand, operator)


def _operator(where: str, names: list[str], size: int) -> float:
    started = time.monotonic()
    apply(*(cluster(where, name, size) for name in names))
    return seconds_until_healthy(where, names, size, started)


def _by_hand(where: str, names: list[str], size: int) -> float:
    objects = [unwatched(manifest) for name in names for manifest in same_objects(where, name, size)]
    started = time.monotonic()
    apply(*objects)
    return seconds_until_healthy(where, names, size, started)


def unwatched(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest without the watched label, so that it triggers no reconcile that would use CPU time."""
    labels = {name: value for name, value in manifest["metadata"]["labels"].items() if name not in manifests.WATCHED}
    return manifest | {"metadata": manifest["metadata"] | {"labels": labels}}


def same_objects(where: str, name: str, size: int) -> list[dict[str, Any]]:
    """The objects that the operator would create for a cluster, including certificates."""
    wanted = Cluster(name=name, namespace=where, uid=str(uuid.uuid4()), generation=1, size=size, version=VERSION)
    now = datetime.now(UTC)
    authorities = {which: pki.authority_secret(wanted, which, now) for which in ("client", "peer")}
    leafs = [
        pki.leaf_secret(wanted, role, authorities[secrets.authority_of(role)], "cluster.local", now)
        for role in secrets.ROLES
    ]
    pods = [wanted.pod_name(ordinal) for ordinal in range(size)]
    created = [*leafs, *manifests.objects(wanted, VERSION, size, member_config.forming(wanted, VERSION, pods), size)]
    for manifest in created:
        del manifest["metadata"]["ownerReferences"]  # the owner, an EtcdCluster, does not exist
    return created
