"""The Secrets with certificates: which are needed, when they are renewed, and whether those that exist can be used.

On every reconcile they are checked without parsing certificates, by annotations written when they were issued.
"""

from __future__ import annotations

import base64
import hashlib
import ssl
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from ..api.cluster import Cluster
from ..kube.manifest import Manifest
from .observation import Certificates

RENEW_AT = "etcdops.dev/renew-at"
NAMES = "etcdops.dev/names"
SHARED_WITH = "etcdops.dev/shared-with"  # on a CA: whose it was when it was copied
LIFE = timedelta(days=90)
AUTHORITY_LIFE = timedelta(days=3650)
_FIELDS = ("ca.crt", "tls.crt", "tls.key")
Role = Literal["server", "peer", "client", "operator"]
ROLES: tuple[Role, ...] = ("server", "peer", "client", "operator")
Authority = Literal["client", "peer"]
AUTHORITIES: tuple[Authority, ...] = ("client", "peer")


def authority_of(role: Role) -> Authority:
    return "peer" if role == "peer" else "client"


def authority_name(cluster: Cluster, which: Authority) -> str:
    return f"{cluster.name}-ca-{which}"


def secret_names(cluster: Cluster) -> list[str]:
    """Every Secret that the cluster needs."""
    leafs = dict.fromkeys(cluster.secret(role) for role in ROLES)
    if cluster.tls.mode == "Disabled":
        return []
    if cluster.tls.mode == "Provided":
        return list(leafs)
    return [*(authority_name(cluster, which) for which in AUTHORITIES), *leafs]


def server_names(cluster: Cluster, role: Role, domain: str) -> tuple[str, ...]:
    """The names in a certificate. A client has none: etcd would compare them with the address it connects from."""
    if role not in ("server", "peer"):
        return ()
    peers = f"*.{cluster.peer_service}.{cluster.namespace}.svc"
    if role == "peer":
        return (peers, f"{peers}.{domain}")
    service = cluster.client_service
    return (
        "localhost",
        peers,
        f"{peers}.{domain}",
        service,
        f"{service}.{cluster.namespace}",
        f"{service}.{cluster.namespace}.svc",
        f"{service}.{cluster.namespace}.svc.{domain}",
    )


def names_hash(names: tuple[str, ...]) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def cluster_domain(resolv_conf: Path = Path("/etc/resolv.conf")) -> str:
    """The cluster's DNS domain, by the operator's own resolv.conf."""
    try:
        for line in resolv_conf.read_text().splitlines():
            for domain in line.split()[1:] if line.startswith("search") else []:
                if domain.startswith("svc."):
                    return domain.removeprefix("svc.")
    except OSError:
        pass
    return "cluster.local"


def check(
    cluster: Cluster,
    found: Mapping[str, Manifest | None],
    now: datetime,
    domain: str | None = None,
    foreign: Collection[str] = (),
) -> Certificates:
    """What is missing, due for renewal, or can't be used. Nothing is issued in the place of what is foreign."""
    if cluster.tls.mode == "Disabled":
        return Certificates()
    if cluster.tls.mode == "Provided":
        return Certificates(problem=" ".join(filter(None, (_problem(name, found[name]) for name in found))))
    domain = domain or cluster_domain()
    ours = [role for role in ROLES if not foreign_to(cluster, role, foreign)]
    names = [*(authority_name(cluster, which) for which in AUTHORITIES), *(cluster.secret(role) for role in ours)]
    missing = tuple(name for name in names if name not in foreign and found.get(name) is None)
    due = tuple(
        cluster.secret(role)
        for role in ours
        if (secret := found.get(cluster.secret(role))) is not None
        and _is_due(
            secret, found.get(authority_name(cluster, authority_of(role))), server_names(cluster, role, domain), now
        )
    )
    shared = [_noted(found.get(authority_name(cluster, which)), SHARED_WITH) for which in AUTHORITIES]
    return Certificates(missing, due, shared=tuple(dict.fromkeys(filter(None, shared))))


def foreign_to(cluster: Cluster, role: Role, foreign: Collection[str]) -> bool:
    """Whether a certificate can't be issued, because its Secret or that of its CA is foreign."""
    return not {cluster.secret(role), authority_name(cluster, authority_of(role))}.isdisjoint(foreign)


def _noted(secret: Manifest | None, annotation: str) -> str:
    return str(((secret or {}).get("metadata", {}).get("annotations") or {}).get(annotation, ""))


def _is_due(secret: Manifest, authority: Manifest | None, names: tuple[str, ...], now: datetime) -> bool:
    noted = secret["metadata"].get("annotations") or {}
    return (
        any(field not in secret.get("data", {}) for field in _FIELDS)
        or _renewal(noted.get(RENEW_AT, "")) <= now
        or noted.get(NAMES) != names_hash(names)
        or (authority is not None and secret["data"]["ca.crt"] != authority["data"]["tls.crt"])
    )


def renewal_date(issued: datetime, expires: datetime) -> str:
    """When two thirds of a certificate's life are over, in the form of its annotation."""
    return (issued + (expires - issued) * 2 / 3).strftime("%Y-%m-%dT%H:%M:%SZ")


def _renewal(noted: str) -> datetime:
    """When a certificate is to be renewed: at once, if nobody can tell."""
    try:
        return datetime.fromisoformat(noted).astimezone(UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def _problem(name: str, secret: Manifest | None) -> str:
    """Why a Secret that the user provides can't be used."""
    if secret is None:
        return f"Secret {name} does not exist; create it with ca.crt, tls.crt and tls.key."
    missing = [field for field in _FIELDS if not secret.get("data", {}).get(field)]
    if missing:
        return f"Secret {name} lacks {', '.join(missing)}."
    try:
        ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
        ssl.PEM_cert_to_DER_cert(base64.b64decode(secret["data"]["tls.crt"]).decode().strip())
    except (ssl.SSLError, ValueError) as error:
        return f"Secret {name} has a certificate that can't be read ({error})."
    return ""
