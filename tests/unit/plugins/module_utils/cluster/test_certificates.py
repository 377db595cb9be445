from __future__ import annotations

import base64
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import TlsSpec
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import certificates, pki
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from cryptography import x509

from .builders import CLUSTER, NOW

DOMAIN = "cluster.local"


def _all() -> dict[str, Manifest | None]:
    found: dict[str, Manifest | None] = {
        "e-ca-client": pki.authority_secret(CLUSTER, "client", NOW),
        "e-ca-peer": pki.authority_secret(CLUSTER, "peer", NOW),
    }
    for role in certificates.ROLES:
        authority = found[certificates.authority_name(CLUSTER, certificates.authority_of(role))]
        assert authority
        found[CLUSTER.secret(role)] = pki.leaf_secret(CLUSTER, role, authority, DOMAIN, NOW)
    return found


def _certificate(secret: Manifest | None) -> x509.Certificate:
    assert secret
    return x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))


def test_certificates_are_due_after_sixty_days() -> None:
    found = _all()
    assert certificates.check(CLUSTER, found, NOW + timedelta(days=59), DOMAIN).due == ()
    due = certificates.check(CLUSTER, found, NOW + timedelta(days=61), DOMAIN).due
    assert set(due) == {"e-server-tls", "e-peer-tls", "e-client-tls", "e-operator-tls"}


@pytest.mark.parametrize("noted", ["", "soon", "2026-13-01T00:00:00Z"])
def test_renewal_date_that_cannot_be_read_makes_a_certificate_due(noted: str) -> None:
    found = _all()
    secret = found["e-peer-tls"]
    assert secret
    secret["metadata"]["annotations"][certificates.RENEW_AT] = noted
    assert certificates.check(CLUSTER, found, NOW, DOMAIN).due == ("e-peer-tls",)


def test_missing_secret_is_found() -> None:
    found = _all() | {"e-peer-tls": None}
    assert certificates.check(CLUSTER, found, NOW, DOMAIN).missing == ("e-peer-tls",)


def test_another_ca_or_other_names_make_a_certificate_due() -> None:
    other = _all() | {"e-ca-peer": pki.authority_secret(CLUSTER, "peer", NOW)}
    assert certificates.check(CLUSTER, other, NOW, DOMAIN).due == ("e-peer-tls",)
    assert set(certificates.check(CLUSTER, _all(), NOW, "other.domain").due) == {"e-server-tls", "e-peer-tls"}


def test_server_certificate_names_pods_services_and_localhost() -> None:
    names = _certificate(_all()["e-server-tls"]).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    found = set(names.value.get_values_for_type(x509.DNSName))
    assert {
        "localhost",
        "*.e-peers.default.svc",
        "*.e-peers.default.svc.cluster.local",
        "e-client",
        "e-client.default.svc",
        "e-client.default.svc.cluster.local",
    } <= found


def test_client_certificate_has_no_names_and_peers_have_their_own_ca() -> None:
    found = _all()
    with pytest.raises(x509.ExtensionNotFound):
        _certificate(found["e-client-tls"]).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert _certificate(found["e-peer-tls"]).issuer != _certificate(found["e-client-tls"]).issuer


def test_each_invalid_secret_of_the_user_is_named_with_its_cause() -> None:
    own = replace(CLUSTER, tls=TlsSpec("Provided", "srv", "peer", "cli"))
    good = _all()["e-server-tls"]
    assert good
    broken = {**good, "data": {**good["data"], "tls.crt": base64.b64encode(b"nonsense").decode()}}
    lacking = {**good, "data": {"ca.crt": good["data"]["ca.crt"]}}
    problem = certificates.check(own, {"srv": broken, "peer": None, "cli": lacking}, NOW, DOMAIN).problem
    assert "Secret srv has a certificate that can't be read" in problem
    assert "Secret peer does not exist" in problem
    assert "Secret cli lacks tls.crt, tls.key" in problem
    assert certificates.check(own, {"srv": good, "peer": good, "cli": good}, NOW, DOMAIN).problem == ""


def test_cluster_domain_is_read_from_resolv_conf(tmp_path: Path) -> None:
    resolv = tmp_path / "resolv.conf"
    resolv.write_text("nameserver 198.19.0.10\nsearch etcdops-system.svc.my.domain svc.my.domain my.domain\n")
    assert certificates.cluster_domain(resolv) == "my.domain"
    assert certificates.cluster_domain(tmp_path / "none") == "cluster.local"
