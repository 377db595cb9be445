"""Options that all modules for etcd share."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  endpoints:
    description:
      - Client URLs of the cluster's members. Name several, so that one that is down does not matter.
    type: list
    elements: str
    default: ["http://127.0.0.1:2379"]
  ca_cert:
    description:
      - PEM file, on the machine where the module runs, with the CA that signed the members' certificates.
      - Without it the machine's own CAs are trusted.
    type: path
  client_cert:
    description:
      - PEM file with the certificate to show to etcd.
    type: path
  client_key:
    description:
      - PEM file with the key of O(client_cert), not encrypted.
    type: path
  username:
    description:
      - The etcd user to log in as. It does no harm where etcd's auth is off.
      - The user is not taken from a client certificate, because etcd's JSON gateway can't do that. Where auth is on, it
        even refuses certificates with a common name, so O(client_cert) must have none then.
    type: str
  password:
    description:
      - The password of O(username).
    type: str
  timeout:
    description:
      - Seconds that a member has for one answer.
    type: float
    default: 5.0
notes:
  - Works with etcd 3.5, 3.6 and 3.7 through the JSON gateway on the client URLs, which is enabled unless
    C(--enable-grpc-gateway=false) is given. Nothing but Python is needed where the module runs.
"""
