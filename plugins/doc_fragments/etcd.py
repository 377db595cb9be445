"""Options that the public etcd modules share."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  endpoints:
    description:
      - Client URLs of the cluster's members. Give several, so that one member may be down.
    type: list
    elements: str
    default: ["http://127.0.0.1:2379"]
  ca_cert:
    description:
      - PEM file, on the machine where the module runs, with the CA that signed the members' certificates.
      - By default the machine's own CAs are trusted.
    type: path
  client_cert:
    description:
      - PEM file with the client certificate.
    type: path
  client_key:
    description:
      - PEM file with the key of O(client_cert), not encrypted.
    type: path
  username:
    description:
      - The etcd user to log in as. It has no effect where auth is disabled.
      - The user is not taken from the client certificate, because etcd's JSON gateway does not support that. Where auth
        is enabled, the gateway refuses certificates with a common name, so O(client_cert) must have none.
    type: str
  password:
    description:
      - The password of O(username).
    type: str
  timeout:
    description:
      - Seconds to wait for one answer of a member.
    type: float
    default: 5.0
notes:
  - Works with etcd 3.5, 3.6 and 3.7 through the JSON gateway on the client URLs, which is enabled unless
    C(--enable-grpc-gateway=false) is set. Only Python is needed where the module runs.
"""
