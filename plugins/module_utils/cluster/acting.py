"""How the operator's modules talk with the members of an EtcdCluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..api.cluster import Cluster, read
from ..etcd.errors import EtcdError
from ..etcd.view import Connection, Survey, survey
from ..kube import client as kube
from ..kube.client import Kube, KubeError
from ..kube.manifest import Manifest
from .observe import client_tls, endpoints

# Documented in plugins/doc_fragments/kube.py.
OPTIONS: dict[str, Any] = {
    "namespace": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
}


@dataclass(frozen=True)
class Reached:
    """An EtcdCluster, and its members as they answer in this moment."""

    api: Kube
    cluster: Cluster
    connection: Connection
    found: Survey


def end(module: AnsibleModule, work: Callable[[Reached], bool]) -> None:
    """Do something with the members (it returns whether anything changed), and end the module.

    That etcd, or we, refuse it in this moment is no failure: the operator looks again.
    """
    try:
        with _reached(module.params["namespace"], module.params["name"]) as reached:
            changed = work(reached)
    except KubeError as error:
        module.fail_json(msg=str(error))
    except EtcdError as error:
        module.exit_json(changed=False, refused=str(error))
    module.exit_json(changed=changed, refused="")


@contextmanager
def _reached(namespace: str, name: str) -> Iterator[Reached]:
    api = kube.connect()
    cluster = _find(api, namespace, name)
    pods = api.list("Pod", cluster.namespace, cluster.selector)
    connection = _connect(api, cluster, pods)
    going = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]}
    try:
        found = survey(connection, list(connection.endpoints), discover=False)
        yield Reached(api, cluster, connection, without(found, going))
    finally:
        connection.close()


def without(found: Survey, going: Collection[str]) -> Survey:
    """Who is about to go is not counted upon, though it still answers."""
    members = (
        replace(seen, healthy=False, error="its pod is being deleted") if seen.member.name in going else seen
        for seen in found.members
    )
    return replace(found, members=tuple(members))


def _find(api: Kube, namespace: str, name: str) -> Cluster:
    resource = api.get("EtcdCluster", namespace, name)
    if resource is None:
        raise KubeError(404, f"EtcdCluster {name} is gone.")
    return read(resource)


def _connect(api: Kube, cluster: Cluster, pods: list[Manifest]) -> Connection:
    """To every pod that has an address."""
    tls = None
    if cluster.tls.enabled:
        name = cluster.secret("operator")
        secret = api.get("Secret", cluster.namespace, name)
        if secret is None:
            raise KubeError(404, f"Secret {name} is gone.")
        tls = client_tls(secret)
    found = endpoints(cluster, pods).values()
    return Connection(tls, timeout=3.0, endpoints={endpoint.url: endpoint for endpoint in found})
