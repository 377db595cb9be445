"""CAs that have the names of an earlier version of the operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import authorities, certificates, pki
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.certificates import Authority
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from .builders import CLUSTER, NOW

DOMAIN = "cluster.local"
SHOP = replace(CLUSTER, name="shop", uid="uid-shop")
PEER = replace(CLUSTER, name="shop-peer", uid="uid-shop-peer")


def _former(cluster: Any, which: Authority) -> Manifest:
    """A CA as the earlier version made it."""
    made = pki.authority_secret(cluster, which, NOW)
    return {**made, "metadata": {**made["metadata"], "name": authorities.former_name(cluster, which)}}


@pytest.mark.parametrize("which", certificates.AUTHORITIES)
def test_content_is_copied_so_that_no_certificate_is_due(which: Authority) -> None:
    former = _former(SHOP, which)
    roles = [role for role in certificates.ROLES if certificates.authority_of(role) == which]
    leafs = {SHOP.secret(role): pki.leaf_secret(SHOP, role, former, DOMAIN, NOW) for role in roles}
    copied = authorities.inherited(SHOP, which, former, leafs.values())
    assert copied
    assert copied["metadata"]["name"] == certificates.authority_name(SHOP, which)
    assert copied["data"] == former["data"]
    found = {**leafs, copied["metadata"]["name"]: copied}
    state = certificates.check(SHOP, found, NOW, DOMAIN)
    assert (state.due, state.shared) == ((), ())


def test_ca_that_two_clusters_share_is_copied_and_reported() -> None:
    """The members of shop-peer trust only the CA that shop has made, until they restart."""
    former = _former(SHOP, "peer")
    assert former["metadata"]["name"] == authorities.former_name(PEER, "client")
    leaf = pki.leaf_secret(PEER, "server", former, DOMAIN, NOW)
    copied = authorities.inherited(PEER, "client", former, [None, leaf])
    assert copied
    assert copied["data"] == former["data"]
    assert copied["metadata"]["ownerReferences"][0]["uid"] == PEER.uid
    found = {"shop-peer-ca-client": copied}
    assert certificates.check(PEER, found, NOW, DOMAIN).shared == ("EtcdCluster shop",)


def test_foreign_ca_never_signs_for_a_new_cluster() -> None:
    shared = _former(SHOP, "peer")
    users = {**shared, "metadata": {"name": "shop-peer-ca"}}
    for former in (shared, users):
        assert authorities.inherited(PEER, "client", former, [None, None]) is None
        planted = {**pki.leaf_secret(PEER, "server", former, DOMAIN, NOW), "metadata": {"name": "shop-peer-server-tls"}}
        assert authorities.inherited(PEER, "client", former, [planted]) is None
    assert authorities.inherited(PEER, "client", None, []) is None


def test_foreign_ca_that_signs_already_is_kept_and_reported() -> None:
    users = {**_former(SHOP, "client"), "metadata": {"name": "shop-ca"}}
    leaf = pki.leaf_secret(SHOP, "client", users, DOMAIN, NOW)
    copied = authorities.inherited(SHOP, "client", users, [leaf])
    assert copied
    assert copied["metadata"]["annotations"] == {certificates.SHARED_WITH: "Secret shop-ca"}


def test_nothing_is_issued_in_the_place_or_by_the_ca_of_something_else() -> None:
    all_missing = certificates.check(CLUSTER, {}, NOW, DOMAIN, {"e-ca-peer"}).missing
    assert set(all_missing) == {"e-ca-client", "e-server-tls", "e-client-tls", "e-operator-tls"}
    client = pki.authority_secret(CLUSTER, "client", NOW)
    found = {"e-ca-client": client, "e-server-tls": pki.leaf_secret(CLUSTER, "server", client, DOMAIN, NOW)}
    late = NOW.replace(year=NOW.year + 1)
    state = certificates.check(CLUSTER, found, late, DOMAIN, {"e-ca-peer", "e-client-tls"})
    assert (state.missing, state.due) == (("e-operator-tls",), ("e-server-tls",))
