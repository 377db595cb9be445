#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Certificates of a cluster; keys never leave this process but into Secrets."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_certificates
short_description: Issue the certificates of an EtcdCluster that are missing or due
description:
  - Makes the authorities and certificates of an EtcdCluster with managed TLS, each in a Secret, and renews those that
    come near their end. An authority that is there is never replaced. One with the name that an earlier version of the
    operator gave it is copied.
  - A Secret that was not made for this EtcdCluster is neither used nor changed.
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
refused:
  description: Why not all of them were written; empty when they were.
  type: str
  returned: always
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.api import cluster as spec
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import authorities, pki
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import certificates as secrets
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import client as kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.effects import apply_object
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import ChangedError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest, based_on
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.ownership import is_owned


def main() -> None:
    module = AnsibleModule(
        argument_spec={"namespace": {"type": "str", "required": True}, "name": {"type": "str", "required": True}},
        supports_check_mode=True,
    )
    try:
        issued = _issue(module.params["namespace"], module.params["name"], write=not module.check_mode)
    except ChangedError as error:
        module.exit_json(changed=False, issued=[], refused=str(error))
    except (kube.KubeError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(issued), issued=issued, refused="")


def _issue(namespace: str, name: str, *, write: bool) -> list[str]:
    api = kube.connect()
    resource = api.get("EtcdCluster", namespace, name)
    if resource is None:
        return []
    cluster = spec.parse(resource)
    now, domain = datetime.now(UTC), secrets.cluster_domain()
    if cluster.tls.mode != "Managed":
        return []
    found = kube.named(api, "Secret", namespace, secrets.secret_names(cluster))
    there = {each["metadata"]["name"]: each for each in found}
    own = {each: secret for each, secret in there.items() if is_owned(secret, cluster.uid)}
    foreign = there.keys() - own.keys()
    state = secrets.check(cluster, own, now, domain, foreign)
    wanted = [*state.missing, *state.due]
    if not write:
        return wanted
    for which in secrets.AUTHORITIES:
        authority = secrets.authority_name(cluster, which)
        if authority in wanted:
            own[authority] = _authority(api, cluster, which, own, now)
    for role in secrets.ROLES:
        leaf, authority = cluster.secret(role), secrets.authority_name(cluster, secrets.authority_of(role))
        if leaf in wanted:
            made = pki.leaf_secret(cluster, role, own[authority], domain, now)
            apply_object(api, based_on(made, own.get(leaf)), own.get(leaf))
    return wanted


def _authority(
    api: kube.Kube, cluster: spec.Cluster, which: secrets.Authority, own: Mapping[str, Manifest], now: datetime
) -> Manifest:
    """Copy the authority that has an earlier name, or make one. Created, not applied: it is never replaced."""
    former = api.get("Secret", cluster.namespace, authorities.former_name(cluster, which))
    leafs = [own.get(cluster.secret(role)) for role in secrets.ROLES if secrets.authority_of(role) == which]
    made = authorities.inherited(cluster, which, former, leafs) or pki.authority_secret(cluster, which, now)
    if created := api.create(made):
        return created
    found = api.get("Secret", cluster.namespace, made["metadata"]["name"])
    if found is None or not is_owned(found, cluster.uid):
        raise ChangedError(409, f"Secret {made['metadata']['name']} was created by someone else in the meantime")
    return found


if __name__ == "__main__":
    main()
