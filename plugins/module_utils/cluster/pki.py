"""The certificates that the operator issues: two CAs, so that a client certificate does not open the peer port."""

from __future__ import annotations

import base64
import datetime
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ..api.cluster import Cluster
from ..kube.manifest import Manifest
from .certificates import (
    AUTHORITY_LIFE,
    LIFE,
    NAMES,
    RENEW_AT,
    Authority,
    Role,
    authority_name,
    names_hash,
    renewal_date,
    server_names,
)
from .manifests import labels, owner

_SKEW = datetime.timedelta(minutes=5)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def make_authority(common_name: str, now: datetime.datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = (
        _builder(subject, subject, key, now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(ca=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Pair(builder.sign(key, hashes.SHA256()), key)


def make_leaf(authority: Pair, subject: x509.Name, names: tuple[str, ...], now: datetime.datetime) -> Pair:
    """A certificate for a client, and for a server too when it has names."""
    key = ec.generate_private_key(ec.SECP256R1())
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]  # for a server too: etcd's gateway is a client of its own server
    issuer = authority.certificate
    life = min(LIFE, issuer.not_valid_after_utc - now)
    builder = _builder(subject, issuer.subject, key, now, life)
    if names:
        usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
        alternative = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(alternative, critical=False)
    authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(authority_key, critical=False)
    )
    return Pair(builder.sign(authority.key, hashes.SHA256()), key)


def authority_secret(cluster: Cluster, which: Authority, now: datetime.datetime) -> Manifest:
    pair = make_authority(f"{cluster.namespace}/{cluster.name} etcd {which} CA", now)
    data = {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem}
    return secret(cluster, authority_name(cluster, which), data, {})


def leaf_secret(cluster: Cluster, role: Role, authority: Manifest, domain: str, now: datetime.datetime) -> Manifest:
    """A new certificate for a role, signed by the authority in a Secret."""
    pair = read_pair(authority)
    names = server_names(cluster, role, domain)
    leaf = make_leaf(pair, _subject(role), names, now)
    renew_at = renewal_date(now, leaf.certificate.not_valid_after_utc)
    data = {"ca.crt": pair.certificate_pem, "tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem}
    annotations = {RENEW_AT: renew_at, NAMES: names_hash(names)}
    return secret(cluster, cluster.secret(role), data, annotations)


def transfer_data(name: str) -> dict[str, str]:
    """A certificate of a CA of its own, for both ends of a connection, as the data of a Secret."""
    now = datetime.datetime.now(datetime.UTC)
    authority = make_authority("etcdops transfer", now)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    leaf = make_leaf(authority, subject, (name,), now)
    data = {"ca.crt": authority.certificate_pem, "tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem}
    return {key: base64.b64encode(value).decode() for key, value in data.items()}


def _subject(role: Role) -> x509.Name:
    # With auth enabled, etcd's gateway refuses a certificate with a common name, and the operator uses the gateway.
    kind = NameOID.ORGANIZATION_NAME if role == "operator" else NameOID.COMMON_NAME
    return x509.Name([x509.NameAttribute(kind, f"etcd-{role}")])


def read_pair(authority: Manifest) -> Pair:
    key = serialization.load_pem_private_key(base64.b64decode(authority["data"]["tls.key"]), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        name = authority["metadata"]["name"]
        raise ValueError(f"Secret {name} has a key of a type that the operator does not issue")
    return Pair(x509.load_pem_x509_certificate(base64.b64decode(authority["data"]["tls.crt"])), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime.datetime,
    life: datetime.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + life)
    )


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        key_cert_sign=ca,
        crl_sign=ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def secret(cluster: Cluster, name: str, data: dict[str, bytes], annotations: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque" if "ca.crt" in data else "kubernetes.io/tls",
        "metadata": {
            "namespace": cluster.namespace,
            "name": name,
            "labels": labels(cluster),
            "annotations": annotations,
            "ownerReferences": [owner(cluster)],
        },
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
