from __future__ import annotations

import base64
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import TlsSpec
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import certificates as secrets
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import pki
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from cryptography import x509

from .test_planner import CLUSTER, NOW

DOMAIN = "cluster.local"


def _all() -> dict[str, Manifest | None]:
    found: dict[str, Manifest | None] = {
        "example-ca": pki.authority_secret(CLUSTER, "client", NOW),
        "example-peer-ca": pki.authority_secret(CLUSTER, "peer", NOW),
    }
    for role in secrets.ROLES:
        authority = found[secrets.authority_name(CLUSTER, secrets.authority_of(role))]
        assert authority
        found[CLUSTER.secret(role)] = pki.leaf_secret(CLUSTER, role, authority, DOMAIN, NOW)
    return found


def _certificate(secret: Manifest | None) -> x509.Certificate:
    assert secret
    return x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))


def test_new_certificates_will_do_for_sixty_days() -> None:
    found = _all()
    assert secrets.check(CLUSTER, found, DOMAIN, NOW + timedelta(days=59)).due == ()
    due = secrets.check(CLUSTER, found, DOMAIN, NOW + timedelta(days=61)).due
    assert set(due) == {"example-server-tls", "example-peer-tls", "example-client-tls", "example-operator-tls"}


def test_what_is_missing_is_found() -> None:
    found = _all() | {"example-peer-tls": None}
    assert secrets.check(CLUSTER, found, DOMAIN, NOW).missing == ("example-peer-tls",)


def test_another_authority_or_other_names_make_a_certificate_due() -> None:
    other = _all() | {"example-peer-ca": pki.authority_secret(CLUSTER, "peer", NOW)}
    assert secrets.check(CLUSTER, other, DOMAIN, NOW).due == ("example-peer-tls",)
    assert set(secrets.check(CLUSTER, _all(), "other.domain", NOW).due) == {"example-server-tls", "example-peer-tls"}


def test_names_cover_pods_services_and_localhost() -> None:
    names = _certificate(_all()["example-server-tls"]).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    found = set(names.value.get_values_for_type(x509.DNSName))
    assert {
        "localhost",
        "*.example-peers.default.svc",
        "*.example-peers.default.svc.cluster.local",
        "example-client",
        "example-client.default.svc",
        "example-client.default.svc.cluster.local",
    } <= found


def test_a_client_certificate_has_no_names_and_peers_have_an_authority_of_their_own() -> None:
    found = _all()
    with pytest.raises(x509.ExtensionNotFound):
        _certificate(found["example-client-tls"]).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert _certificate(found["example-peer-tls"]).issuer != _certificate(found["example-client-tls"]).issuer


def test_broken_secrets_of_the_users_are_told_apart() -> None:
    own = replace(CLUSTER, tls=TlsSpec("Provided", "srv", "peer", "cli"))
    good = _all()["example-server-tls"]
    assert good
    broken = {**good, "data": {**good["data"], "tls.crt": base64.b64encode(b"nonsense").decode()}}
    lacking = {**good, "data": {"ca.crt": good["data"]["ca.crt"]}}
    problem = secrets.check(own, {"srv": broken, "peer": None, "cli": lacking}, DOMAIN, NOW).problem
    assert "Secret srv has a certificate that can't be read" in problem
    assert "Secret peer does not exist" in problem
    assert "Secret cli lacks tls.crt, tls.key" in problem
    assert secrets.check(own, {"srv": good, "peer": good, "cli": good}, DOMAIN, NOW).problem == ""


def test_the_clusters_domain_is_read_from_our_own_pod(tmp_path: Path) -> None:
    resolv = tmp_path / "resolv.conf"
    resolv.write_text("nameserver 198.19.0.10\nsearch etcdops-system.svc.my.domain svc.my.domain my.domain\n")
    assert secrets.cluster_domain(resolv) == "my.domain"
    assert secrets.cluster_domain(tmp_path / "none") == "cluster.local"
