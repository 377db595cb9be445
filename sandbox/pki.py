"""Certificates and kubeconfigs of the sandbox."""

from __future__ import annotations

import base64
import datetime
import json
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = datetime.timedelta(days=365)


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
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )

    def write(self, path: Path) -> None:
        """Write `path`.crt and `path`.key."""
        path.with_suffix(".crt").write_bytes(self.certificate_pem)
        key = path.with_suffix(".key")
        key.touch(mode=0o600)
        key.write_bytes(self.key_pem)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + _VALID)
    )


def make_ca(name: str) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _builder(subject, subject, key).add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
    return Pair(builder.sign(key, hashes.SHA256()), key)


def make_leaf(ca: Pair, user: str, *, groups: tuple[str, ...] = (), names: tuple[str, ...] = ()) -> Pair:
    """A client certificate for `user`, and also a server certificate if it has `names` (host names and addresses)."""
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = _builder(subject, ca.certificate.subject, key)
    if names:
        usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), False)
    builder = builder.add_extension(x509.ExtendedKeyUsage(usages), False)
    return Pair(builder.sign(ca.key, hashes.SHA256()), key)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def kubeconfig(server: str, ca: Pair, user: Pair) -> str:
    """A self-contained kubeconfig (JSON is YAML)."""

    def inline(data: bytes) -> str:
        return base64.b64encode(data).decode()

    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "sandbox",
            "clusters": [
                {
                    "name": "sandbox",
                    "cluster": {"server": server, "certificate-authority-data": inline(ca.certificate_pem)},
                }
            ],
            "users": [
                {
                    "name": "sandbox",
                    "user": {
                        "client-certificate-data": inline(user.certificate_pem),
                        "client-key-data": inline(user.key_pem),
                    },
                }
            ],
            "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox"}}],
        },
        indent=1,
    )
