"""CAs under the names that an earlier version of the operator gave them. Pure.

Until then the peer CA of EtcdCluster shop and the client CA of EtcdCluster shop-peer had the same name. The Secrets
with the earlier names stay, so that the earlier version can be installed again.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

from ..api.cluster import Cluster
from ..kube.manifest import Manifest
from ..kube.ownership import controller, is_owned
from . import pki
from .certificates import SHARED_WITH, Authority, authority_name

_FIELDS = ("tls.crt", "tls.key")


def former_name(cluster: Cluster, which: Authority) -> str:
    return f"{cluster.name}-peer-ca" if which == "peer" else f"{cluster.name}-ca"


def inherited(
    cluster: Cluster, which: Authority, former: Manifest | None, leafs: Iterable[Manifest | None]
) -> Manifest | None:
    """The CA with its new name; None when there is none to copy, so that a new one is made.

    That of another owner is copied only if it has signed certificates of this cluster: its members trust no other one
    until they restart. An annotation tells of it from then on.
    """
    if former is None or not all(field in former.get("data", {}) for field in _FIELDS):
        return None
    own = is_owned(former, cluster.uid)
    trusted = [leaf.get("data", {}).get("ca.crt") for leaf in leafs if leaf and is_owned(leaf, cluster.uid)]
    if not own and former["data"]["tls.crt"] not in trusted:
        return None
    data = {field: base64.b64decode(former["data"][field]) for field in _FIELDS}
    return pki.secret(cluster, authority_name(cluster, which), data, {} if own else {SHARED_WITH: _holder(former)})


def _holder(secret: Manifest) -> str:
    found = controller(secret)
    return f"{found['kind']} {found['name']}" if found else f"Secret {secret['metadata']['name']}"
