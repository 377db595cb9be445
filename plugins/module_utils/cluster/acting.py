"""What the acting modules do to the members of an EtcdCluster. Each asks etcd again immediately before its request.

That etcd, or we, refuse an effect at this moment is no failure: the next reconcile decides again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..api.cluster import Cluster, parse
from ..etcd import maintenance
from ..etcd.connection import Connection
from ..etcd.errors import FAILED_PRECONDITION, UNAVAILABLE, EtcdError
from ..etcd.membership import Wanted
from ..etcd.reconfigure import Outcome, reconfigure
from ..etcd.view import ClusterView, look
from ..kube.client import Asked, Kube, connect
from ..kube.effects import delete_refs
from ..kube.errors import ChangedError, KubeError
from ..kube.manifest import Manifest
from ..kube.ownership import is_owned
from . import members

# Documented in plugins/doc_fragments/kube.py.
OPTIONS: dict[str, Any] = {
    "namespace": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
}


@dataclass(frozen=True)
class Live:
    """An EtcdCluster, and its members as they answer at this moment."""

    api: Kube
    cluster: Cluster
    connection: Connection
    view: ClusterView


def run(module: AnsibleModule, act: Callable[[Live], bool]) -> None:
    """Act on the members (`act` returns whether anything changed), and end the module."""
    try:
        with reach(connect(), module.params["namespace"], module.params["name"]) as live:
            changed = act(live)
    except (ChangedError, EtcdError) as error:
        module.exit_json(changed=False, refused=str(error))
    except KubeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, refused="")


@contextmanager
def reach(api: Kube, namespace: str, name: str) -> Iterator[Live]:
    """Ask every member of an EtcdCluster now. A member whose pod is being deleted is not counted on."""
    resource = api.get("EtcdCluster", namespace, name)
    if resource is None:
        raise KubeError(404, f"EtcdCluster {name} is gone.")
    cluster = parse(resource)
    pods = api.list("Pod", cluster.namespace, cluster.selector)
    connection = members.connect(cluster, pods, _credentials(api, cluster), timeout=3.0)
    stopping = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]}
    try:
        known = resource.get("status", {}).get("clusterID")
        cluster_id = int(known, 16) if known else None
        view = look(connection, list(connection.endpoints), discover=False, cluster_id=cluster_id).require_members()
        yield Live(api, cluster, connection, view.without(stopping))
    finally:
        connection.close()


def _credentials(api: Kube, cluster: Cluster) -> Manifest | None:
    if not cluster.tls.enabled:
        return None
    name = cluster.secret("operator")
    secret = api.get("Secret", cluster.namespace, name)
    if secret is None:
        raise KubeError(404, f"Secret {name} is gone.")
    if cluster.tls.mode == "Managed" and not is_owned(secret, cluster.uid):
        raise ChangedError(409, f"Secret {name} belongs to something else, so it is not used.")
    return secret


def change_member(
    live: Live, state: str, pod: str | None = None, member_id: str | None = None, *, dry_run: bool = False
) -> Outcome:
    """Add the member of a pod as a learner, make a member a voter, or remove it."""
    number = int(member_id, 16) if member_id else None
    match state:
        case "learner":
            _require_vacant(live, [pod or ""])
            wanted = Wanted("present", peer_urls=(live.cluster.peer_url(pod or ""),))
        case "voter":
            wanted = Wanted("promoted", id=number)
        case _:
            wanted = Wanted("absent", id=number)
    return reconfigure(live.connection, live.view, wanted, dry_run=dry_run)


def vacate(
    live: Live, claims: Sequence[Mapping[str, str]], pods: Sequence[Mapping[str, str]], *, dry_run: bool = False
) -> list[str]:
    """Delete PVCs and then pods, each only if it has this uid, and none if a member that has started may use one."""
    if not live.view.quorum:
        raise EtcdError(UNAVAILABLE, "the cluster has no quorum, so nothing is deleted")
    _require_vacant(live, [ref["name"].removeprefix("data-") for ref in claims] + [ref["name"] for ref in pods])
    namespace = live.cluster.namespace
    deleted = delete_refs(live.api, Asked("PersistentVolumeClaim", namespace), claims, dry_run=dry_run)
    return deleted + delete_refs(live.api, Asked("Pod", namespace), pods, "force", dry_run=dry_run)


def recreate(
    api: Kube, namespace: str, name: str, pods: Sequence[Mapping[str, str]], *, dry_run: bool = False
) -> list[str]:
    """Delete pods that were made from an earlier spec, all at once; ChangedError when the cluster has formed by now."""
    resource = api.get("EtcdCluster", namespace, name)
    if resource is None or resource.get("status", {}).get("clusterID"):
        raise ChangedError(409, f"EtcdCluster {name} has formed in the meantime, or is gone")
    return delete_refs(api, Asked("Pod", namespace), pods, dry_run=dry_run)


def _require_vacant(live: Live, pods: Collection[str]) -> None:
    """EtcdError when one of these pods has a member that has started, for example one that another operator added."""
    for pod in pods:
        url = live.cluster.peer_url(pod)
        for member in (one.member for one in live.view.members if url in one.member.peer_urls):
            if not member.is_learner or member.name:
                role = "learner" if member.is_learner else "voter"
                raise EtcdError(
                    FAILED_PRECONDITION, f"{pod} is in use: member {member.id:x} is a {role} that has started"
                )


def set_downgrade(live: Live, version: str, *, dry_run: bool = False) -> bool:
    return maintenance.set_downgrade(live.connection, live.view, version, dry_run=dry_run)
