#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Annotations by which a restore holds and releases an EtcdCluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_annotate
short_description: Set the annotations by which a restore holds and releases an EtcdCluster
description:
  - Sets annotations of an EtcdCluster. The operator watches them, so it reconciles at once.
author: The etcdops authors
options:
  annotations:
    description: The annotations; an empty value removes one.
    type: dict
    required: true
  forget_id:
    description:
      - Whether to remove the cluster ID from its status first, because its members have the data of a new cluster now.
    type: bool
    default: false
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.etcdcluster
"""

EXAMPLES = r"""
- name: Release it
  etcdops.etcd.etcdcluster_annotate:
    namespace: default
    name: example
    annotations:
      etcdops.dev/restore: ""
"""

RETURN = r"""
found:
  description: Whether there is such an EtcdCluster.
  type: bool
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import client as kube


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "namespace": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "annotations": {"type": "dict", "required": True},
            "forget_id": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    namespace, name = module.params["namespace"], module.params["name"]
    wanted = {key: value or None for key, value in module.params["annotations"].items()}
    try:
        api = kube.connect()
        found = api.get("EtcdCluster", namespace, name)
        have = (found or {}).get("metadata", {}).get("annotations") or {}
        changed = found is not None and any(have.get(key) != value for key, value in wanted.items())
        if found and not module.check_mode:
            if module.params["forget_id"]:  # while it is still held and marked as restored
                api.annotate("EtcdCluster", namespace, name, {key: value for key, value in wanted.items() if value})
                api.patch_status("EtcdCluster", namespace, name, {"clusterID": None})
            api.annotate("EtcdCluster", namespace, name, wanted)
    except kube.KubeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, found=found is not None)


if __name__ == "__main__":
    main()
