#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Enable or cancel a downgrade of an EtcdCluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_downgrade
short_description: Enable or cancel a downgrade of an EtcdCluster
description:
  - Enables a downgrade through etcd's API, or cancels it. Members then convert their data so that the older version can
    read it. No member restarts.
  - A request that etcd refuses now is not a failure. RV(refused) says why, and the next reconcile decides again.
author: The etcdops authors
options:
  version:
    description: The minor version, such as 3.5; empty to cancel.
    type: str
    default: ""
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.etcdcluster
"""

EXAMPLES = r"""
- name: Prepare for 3.5
  etcdops.etcd.etcdcluster_downgrade:
    namespace: default
    name: example
    version: "3.5"
"""

RETURN = r"""
refused:
  description: Why it was not done; empty when it was done or not needed.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import acting


def main() -> None:
    module = AnsibleModule(
        argument_spec={**acting.OPTIONS, "version": {"type": "str", "default": ""}},
        supports_check_mode=True,
    )
    version = module.params["version"]
    acting.run(module, lambda live: acting.set_downgrade(live, version, dry_run=module.check_mode))


if __name__ == "__main__":
    main()
