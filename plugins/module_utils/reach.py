"""How the operator's modules talk with the members of an EtcdCluster."""

from __future__ import annotations

from .kube import Kube, KubeError
from .observe import client_tls, endpoints
from .spec import Cluster, read
from .survey import Connection


def find(api: Kube, namespace: str, name: str) -> Cluster:
    resource = api.get("EtcdCluster", namespace, name)
    if resource is None:
        raise KubeError(404, f"EtcdCluster {name} is gone.")
    return read(resource)


def connect(api: Kube, cluster: Cluster) -> Connection:
    """To every pod that has an address."""
    pods = api.list("Pod", cluster.namespace, cluster.selector)
    tls = None
    if cluster.tls.enabled:
        name = cluster.secret("operator")
        secret = api.get("Secret", cluster.namespace, name)
        if secret is None:
            raise KubeError(404, f"Secret {name} is gone.")
        tls = client_tls(secret)
    found = endpoints(cluster, pods).values()
    return Connection(tls, timeout=3.0, endpoints={endpoint.url: endpoint for endpoint in found})
