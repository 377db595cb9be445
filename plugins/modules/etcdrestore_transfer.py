#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Certificates with which one pod hands a snapshot to others; the key never leaves this process but into a Secret."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdrestore_transfer
short_description: Issue the certificates by which an EtcdRestore hands its snapshot from pod to pod
description:
  - Makes a certificate, for both ends, in a Secret that goes with the EtcdRestore. One that is there is left as it is.
  - Nothing of the key is returned or logged.
author: The etcdops authors
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.plan
"""

EXAMPLES = r"""
- name: Make them
  etcdops.etcd.etcdrestore_transfer:
    namespace: default
    name: example
"""

RETURN = r"""
secret:
  description: The name of the Secret.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.api.restore import parse
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import pki
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import connect
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.ownership import is_owned
from ansible_collections.etcdops.etcd.plugins.module_utils.reconcile import OPTIONS
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.jobs import owner, transfer_name
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots import transfer


def main() -> None:
    module = AnsibleModule(argument_spec=OPTIONS, supports_check_mode=True)
    try:
        created, secret = _create(module.params["namespace"], module.params["name"], write=not module.check_mode)
    except KubeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=created, secret=secret)


def _create(namespace: str, name: str, *, write: bool) -> tuple[bool, str]:
    """Whether the Secret was created, and its name."""
    api = connect()
    resource = api.get("EtcdRestore", namespace, name)
    if resource is None:
        return False, ""
    restore = parse(resource)
    secret = transfer_name(restore)
    found = api.get("Secret", namespace, secret)
    if found is not None and not is_owned(found, restore.uid):
        raise KubeError(409, f"Secret {secret} belongs to something else, so it is not used")
    if found is not None:
        return False, secret
    if write:
        meta = {"namespace": namespace, "name": secret, "ownerReferences": [owner(restore)]}
        data = pki.transfer_data(transfer.NAME)
        api.create({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta, "data": data})
    return True, secret


if __name__ == "__main__":
    main()
