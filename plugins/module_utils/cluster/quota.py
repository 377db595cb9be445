"""The default of spec.options.quotaBackendBytes: it follows from the size of the volumes. Pure.

With a quota, a full database is an alarm that a person can end. Without one that fits, it is a full volume, on which
etcd can't even start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..api.cluster import Cluster
from ..kube.quantity import parse
from .observation import Claim

_LOG = 128 << 20  # bytes of the two files of its log that etcd allocates in advance
_LARGEST = 8 << 30  # etcd warns of a larger quota
_SMALLEST = 16 << 20
_FIELD = "quotaBackendBytes"
_QUOTA = re.compile(r"^quota-backend-bytes: (\d+)$", re.MULTILINE)


def with_default(cluster: Cluster, files: Mapping[str, str], claims: Iterable[Claim]) -> Cluster:
    """The cluster with a quota, if its spec has none.

    Members that started without one, with an operator that had no default, stay without: a smaller quota than the one
    that they have could stop their writes. For the same reason a quota never shrinks, for example to that of a new
    member whose PVC has yet to grow.
    """
    known = [int(found) for text in files.values() for found in _QUOTA.findall(text)]
    if _FIELD in cluster.options or (any(files.values()) and not known):
        return cluster
    own = [claim for claim in claims if claim.cluster_uid == cluster.uid and claim.capacity]
    sizes = [min(parse(claim.requested), parse(claim.capacity)) for claim in own]  # a capacity may be rounded up
    size = min(sizes, default=parse(cluster.storage.size))
    return replace(cluster, options={**cluster.options, _FIELD: max(default(int(size)), *known, 0)})


def default(size: int) -> int:
    """The quota for a volume with so many bytes: half of what the log leaves, so that defragmentation has room."""
    return max(_SMALLEST, min(_LARGEST, (size - _LOG) // 2))
