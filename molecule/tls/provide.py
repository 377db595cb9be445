"""Makes the Secrets that a user brings along: python provide.py NAMESPACE CLUSTER. Run by converge.yml.

Names: own-server, own-peer, own-client; and own-broken, whose certificate is nonsense.
"""

from __future__ import annotations

import base64
import json
import sys
from datetime import UTC, datetime

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import certificates as secrets
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import pki
from cryptography import x509
from cryptography.x509.oid import NameOID

from sandbox import cluster as sandbox


def main() -> None:
    namespace, name = sys.argv[1:]
    cluster = Cluster(name=name, namespace=namespace, uid="", generation=1, size=3, version="3.6.16")
    now = datetime.now(UTC)
    made = []
    authority = pki.make_authority("the user's own", now)
    for role in ("server", "peer", "client"):
        leaf = pki.make_leaf(authority, _name(role), secrets.server_names(cluster, role, "cluster.local"), now)  # type: ignore[arg-type]
        pem = {"ca.crt": authority.certificate_pem, "tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem}
        made.append(_secret(namespace, f"own-{role}", pem))
    made.append(_secret(namespace, "own-broken", dict.fromkeys(("ca.crt", "tls.crt", "tls.key"), b"nonsense")))
    sandbox.kubectl("apply", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _secret(namespace: str, name: str, data: dict[str, bytes]) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": namespace, "name": name},
        "data": {field: base64.b64encode(value).decode() for field, value in data.items()},
    }


if __name__ == "__main__":
    main()
