#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Certificates of a cluster; keys never leave this process but into Secrets."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_certificates
short_description: Issue the certificates of an EtcdCluster that are missing or due
description:
  - Makes the authorities and certificates of an EtcdCluster with managed TLS, each in a Secret, and renews those that
    come near their end. An authority that is there is never replaced.
  - Nothing of the keys is returned or logged.
author: The etcdops authors
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.etcdcluster
"""

EXAMPLES = r"""
- name: Renew what is due
  etcdops.etcd.etcdcluster_certificates:
    namespace: default
    name: example
"""

RETURN = r"""
issued:
  description: The names of the Secrets that were written.
  type: list
  elements: str
  returned: always
"""

from datetime import UTC, datetime
from typing import Literal

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.api import cluster as spec
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import certificates as secrets
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import pki
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import client as kube


def main() -> None:
    module = AnsibleModule(
        argument_spec={"namespace": {"type": "str", "required": True}, "name": {"type": "str", "required": True}},
        supports_check_mode=True,
    )
    try:
        issued = _issue(module.params["namespace"], module.params["name"], write=not module.check_mode)
    except (kube.KubeError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(issued), issued=issued)


def _issue(namespace: str, name: str, *, write: bool) -> list[str]:
    api = kube.connect()
    resource = api.get("EtcdCluster", namespace, name)
    if resource is None:
        return []
    cluster = spec.parse(resource)
    now, domain = datetime.now(UTC), secrets.cluster_domain()
    names = secrets.secret_names(cluster)
    answers = api.read([kube.Asked("Secret", namespace, each) for each in names])
    found = {each: next(iter(answer), None) for each, answer in zip(names, answers, strict=True)}
    state = secrets.check(cluster, found, now, domain)
    wanted = [*state.missing, *state.due]
    if not write or cluster.tls.mode != "Managed":
        return wanted
    authorities: tuple[Literal["client", "peer"], ...] = ("client", "peer")
    for which in authorities:
        own = secrets.authority_name(cluster, which)
        if found[own] is None:  # create, not apply: an authority is never replaced
            found[own] = api.create(pki.authority_secret(cluster, which, now)) or api.get("Secret", namespace, own)
    for role in secrets.ROLES:
        authority = found[secrets.authority_name(cluster, secrets.authority_of(role))]
        if cluster.secret(role) in wanted and authority is not None:
            api.apply(pki.leaf_secret(cluster, role, authority, domain, now))
    return wanted


if __name__ == "__main__":
    main()
