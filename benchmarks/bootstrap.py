"""From `kubectl apply` to healthy, against the same pods made by hand."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import certificates as secrets
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import config, manifests, pki

from .clusters import PREFIX, VERSION, cluster
from .kube import apply, namespace, seconds_until_healthy


def three_members(rounds: int = 3) -> dict[str, float]:
    """One cluster of three members."""
    return _ratio("apply_to_healthy", ["bench"], size=3, rounds=rounds)


def ten_at_once(rounds: int = 2) -> dict[str, float]:
    """Ten clusters of one member, applied at once."""
    return _ratio("ten_at_once", [f"bench-{number}" for number in range(10)], size=1, rounds=rounds)


def _ratio(what: str, names: list[str], *, size: int, rounds: int) -> dict[str, float]:
    where = PREFIX + what.replace("_", "-")
    by_hand, operator = [], []
    for _ in range(rounds):  # in turn, so that both meet the same machine
        with namespace(where):
            by_hand.append(_by_hand(where, names, size))
        with namespace(where):
            operator.append(_operator(where, names, size))
    return {"by_hand_s": min(by_hand), "operator_s": min(operator), "ratio": min(operator) / min(by_hand)}


def _operator(where: str, names: list[str], size: int) -> float:
    started = time.monotonic()
    apply(*(cluster(where, name, size) for name in names))
    return seconds_until_healthy(where, names, size, started)


def _by_hand(where: str, names: list[str], size: int) -> float:
    everything = [unwatched(manifest) for name in names for manifest in same_objects(where, name, size)]
    started = time.monotonic()
    apply(*everything)
    return seconds_until_healthy(where, names, size, started)


def unwatched(manifest: dict[str, Any]) -> dict[str, Any]:
    """What the operator does not hear of: its plays would take their share of the machine."""
    labels = {name: value for name, value in manifest["metadata"]["labels"].items() if name not in manifests.WATCHED}
    return manifest | {"metadata": manifest["metadata"] | {"labels": labels}}


def same_objects(where: str, name: str, size: int) -> list[dict[str, Any]]:
    """What the operator makes, certificates and all, ready to be applied at once."""
    wanted = Cluster(name=name, namespace=where, uid=str(uuid.uuid4()), generation=1, size=size, version=VERSION)
    now = datetime.now(UTC)
    authorities = {which: pki.authority_secret(wanted, which, now) for which in ("client", "peer")}
    leafs = [
        pki.leaf_secret(wanted, role, authorities[secrets.authority_of(role)], "cluster.local", now)
        for role in secrets.ROLES
    ]
    pods = [wanted.pod_name(ordinal) for ordinal in range(size)]
    made = [*leafs, *manifests.objects(wanted, VERSION, size, config.forming(wanted, VERSION, pods), size)]
    for manifest in made:
        del manifest["metadata"]["ownerReferences"]  # there is no EtcdCluster to own them
    return made
