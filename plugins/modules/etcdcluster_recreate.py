#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Delete pods of an EtcdCluster that has not formed yet, so that they are made from the current spec."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_recreate
short_description: Delete pods of an EtcdCluster that has not formed yet
description:
  - Deletes all of these pods at once. Nothing is deleted if the cluster has formed in the meantime, because then its
    members may only restart one at a time.
  - A deletion that can't be made now is not a failure. RV(refused) says why, and the next reconcile decides again.
author: The etcdops authors
options:
  pods:
    description: The pods.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The name.
        type: str
        required: true
      uid:
        description: The uid. Another pod of this name is not deleted.
        type: str
        required: true
      version:
        description: The resourceVersion, if nothing about the pod may have changed.
        type: str
        default: ""
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.etcdcluster
"""

EXAMPLES = r"""
- name: Delete a pod that was made from an earlier spec
  etcdops.etcd.etcdcluster_recreate:
    namespace: default
    name: example
    pods:
      - name: example-0
        uid: 4d1a6cf5-7d0c-4f0b-8f38-9c06a34a0a68
"""

RETURN = r"""
refused:
  description: Why nothing was deleted; empty when the pods are deleted or gone.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import acting
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import connect
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.effects import REFS
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import ChangedError, KubeError


def main() -> None:
    options = {key: value for key, value in REFS.items() if key != "default"} | {"required": True}
    module = AnsibleModule(argument_spec={**acting.OPTIONS, "pods": options}, supports_check_mode=True)
    namespace, name, pods = module.params["namespace"], module.params["name"], module.params["pods"]
    try:
        deleted = acting.recreate(connect(), namespace, name, pods, dry_run=module.check_mode)
    except ChangedError as error:
        module.exit_json(changed=False, refused=str(error))
    except KubeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(deleted), refused="")


if __name__ == "__main__":
    main()
