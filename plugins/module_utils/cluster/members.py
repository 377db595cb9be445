"""How the operator talks to the members of an EtcdCluster: by pod address, with the operator's certificate."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable
from contextlib import ExitStack

from ..api.cluster import Cluster
from ..etcd.connection import Connection
from ..etcd.endpoint import Endpoint, Tls
from ..kube.manifest import Manifest


def connect(cluster: Cluster, pods: Iterable[Manifest], credentials: Manifest | None, *, timeout: float) -> Connection:
    """A connection to every pod that has an address. The address is dialled: DNS may not know a new name yet."""
    tls = _tls(credentials) if credentials else None
    addresses = {pod["metadata"]["name"]: pod.get("status", {}).get("podIP") for pod in pods}
    found = [Endpoint(cluster.client_url(name), address) for name, address in addresses.items() if address]
    return Connection(tls, timeout=timeout, endpoints={endpoint.url: endpoint for endpoint in found})


def _tls(secret: Manifest) -> Tls:
    """A Secret's certificates. ssl reads from files only; these are in memory, so the key is on no disk."""
    with ExitStack() as open_files:
        paths = []
        for name in ("ca.crt", "tls.crt", "tls.key"):
            file = os.memfd_create(name)
            open_files.callback(os.close, file)
            os.write(file, base64.b64decode(secret["data"][name]))
            paths.append(f"/proc/self/fd/{file}")
        tls = Tls(*paths)
        _ = tls.context  # reads the files while they are there
    return tls
