"""etcdcluster_certificates against a real kube-apiserver."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, parse
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import authorities, certificates, pki
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.modules import etcdcluster_certificates

from tests.unit.plugins.objects import Namespace
from tests.unit.plugins.running import succeed

ALL = {"ca-client", "ca-peer", "server-tls", "peer-tls", "client-tls", "operator-tls"}


def _issue(cluster: Cluster, *, check: bool = False) -> set[str]:
    issued = succeed(etcdcluster_certificates, check=check, namespace=cluster.namespace, name=cluster.name)["issued"]
    return {name.removeprefix(f"{cluster.name}-") for name in issued}


def _secrets(namespace: Namespace, cluster: Cluster) -> dict[str, Manifest]:
    found = namespace.kube.list("Secret", namespace.name, f"etcdops.dev/cluster={cluster.name}")
    return {each["metadata"]["name"]: each for each in found}


def _made_by_the_previous_version(namespace: Namespace, cluster: Cluster, *also: Manifest) -> None:
    """Its CAs and certificates; `also` are CAs that there were already."""
    now, domain = datetime.now(UTC), certificates.cluster_domain()
    found = {each["metadata"]["name"]: each for each in also}
    for which in certificates.AUTHORITIES:
        name = authorities.former_name(cluster, which)
        made = pki.authority_secret(cluster, which, now)
        if name not in found:
            found[name] = namespace.create({**made, "metadata": {**made["metadata"], "name": name}})
    for role in certificates.ROLES:
        former = found[authorities.former_name(cluster, certificates.authority_of(role))]
        namespace.create(pki.leaf_secret(cluster, role, former, domain, now))


def test_all_are_issued_once(namespace: Namespace) -> None:
    cluster = parse(namespace.cluster("shop"))
    assert _issue(cluster, check=True) == ALL
    assert _secrets(namespace, cluster) == {}
    assert _issue(cluster) == ALL
    assert {name.removeprefix("shop-") for name in _secrets(namespace, cluster)} == ALL
    assert _issue(cluster) == set()


def test_cas_of_the_previous_version_are_copied_and_nothing_else_is_written(namespace: Namespace) -> None:
    """Members read their CA only when they start, so it must stay the same. The former names stay for a rollback."""
    cluster = parse(namespace.cluster("shop"))
    _made_by_the_previous_version(namespace, cluster)
    before = _secrets(namespace, cluster)
    assert _issue(cluster) == {"ca-client", "ca-peer"}
    after = _secrets(namespace, cluster)
    assert {name: after[name] for name in before} == before
    assert after["shop-ca-client"]["data"] == before["shop-ca"]["data"]
    assert after["shop-ca-peer"]["data"] == before["shop-peer-ca"]["data"]
    assert _issue(cluster) == set()


def test_two_clusters_that_share_a_ca_keep_it_and_one_tells(namespace: Namespace) -> None:
    shop, peer = (parse(namespace.cluster(name)) for name in ("shop", "shop-peer"))
    _made_by_the_previous_version(namespace, shop)
    shared = namespace.get("Secret", "shop-peer-ca")
    _made_by_the_previous_version(namespace, peer, shared)
    assert _issue(shop) == _issue(peer) == {"ca-client", "ca-peer"}
    for name in ("shop-ca-peer", "shop-peer-ca-client"):
        assert namespace.get("Secret", name)["data"] == shared["data"]
    copied = namespace.get("Secret", "shop-peer-ca-client")["metadata"]
    assert copied["annotations"] == {certificates.SHARED_WITH: "EtcdCluster shop"}
    assert copied["ownerReferences"][0]["uid"] == peer.uid


def test_new_clusters_share_no_ca(namespace: Namespace) -> None:
    clusters = [parse(namespace.cluster(name)) for name in ("shop", "shop-peer")]
    for cluster in clusters:
        _issue(cluster)
    names = [certificates.authority_name(cluster, which) for cluster in clusters for which in certificates.AUTHORITIES]
    assert len({namespace.get("Secret", name)["data"]["tls.crt"] for name in names}) == 4


@pytest.mark.parametrize("name", ["shop-ca-peer", "shop-client-tls"])
def test_secret_of_something_else_is_neither_used_nor_changed(namespace: Namespace, name: str) -> None:
    cluster = parse(namespace.cluster("shop"))
    theirs = namespace.secret(name)
    dependent = {"shop-ca-peer": {"ca-peer", "peer-tls"}, "shop-client-tls": {"client-tls"}}[name]
    assert _issue(cluster) == ALL - dependent
    assert _issue(cluster) == set()
    assert namespace.get("Secret", name) == theirs
    namespace.kube.delete("Secret", namespace.name, name)
    assert _issue(cluster) == dependent


def test_ca_of_a_user_never_signs(namespace: Namespace) -> None:
    """One that has the former name of ours."""
    cluster = parse(namespace.cluster("shop"))
    made = pki.authority_secret(cluster, "client", datetime.now(UTC))
    users = namespace.create({**made, "metadata": {"name": "shop-ca"}})
    _issue(cluster)
    assert namespace.get("Secret", "shop-ca-client")["data"]["tls.crt"] != users["data"]["tls.crt"]
