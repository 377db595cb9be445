#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Annotations by which a restore holds and releases an EtcdCluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_annotate
short_description: Set the annotations by which a restore holds and releases an EtcdCluster
description:
  - Sets annotations of an EtcdCluster. The operator watches them, so it reconciles at once.
  - Nothing is changed if the EtcdCluster has changed since the decision. So of two restores, only one can hold it.
author: The etcdops authors
options:
  annotations:
    description: The annotations; an empty value removes one.
    type: dict
    required: true
  resource_version:
    description: The resourceVersion of the EtcdCluster on which this was decided.
    type: str
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
    resource_version: "4711"
"""

RETURN = r"""
refused:
  description: Why nothing was changed; empty when it was.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import client as kube
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import acting


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "namespace": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "annotations": {"type": "dict", "required": True},
            "resource_version": {"type": "str", "required": True},
            "forget_id": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    namespace, name, version = (module.params[each] for each in ("namespace", "name", "resource_version"))
    wanted = {key: value or None for key, value in module.params["annotations"].items()}
    act = acting.start_restored if module.params["forget_id"] else acting.annotate
    try:
        done = module.check_mode or act(kube.connect(), namespace, name, wanted, version)
    except kube.KubeError as error:
        module.fail_json(msg=str(error))
    refused = "" if done else f"EtcdCluster {name} has changed since this was decided, or is gone."
    module.exit_json(changed=done, refused=refused)


if __name__ == "__main__":
    main()
