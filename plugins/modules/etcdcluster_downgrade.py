#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Has the members of an EtcdCluster get ready for an older version."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_downgrade
short_description: Have the members of an EtcdCluster get ready for an older minor version
description:
  - Enables a downgrade through etcd's own API, or calls it off. Members then bring their data to a form that the older
    version can read; which of them restarts with it, and when, is for others to say.
  - That it can't be done now is no failure; RV(refused) says why, and the operator looks again.
author: The etcdops authors
options:
  version:
    description: The minor version, such as 3.5; empty to call it off.
    type: str
    default: ""
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.etcdcluster
"""

EXAMPLES = r"""
- name: Get ready for 3.5
  etcdops.etcd.etcdcluster_downgrade:
    namespace: default
    name: example
    version: "3.5"
"""

RETURN = r"""
refused:
  description: Why it was not done; empty when it was, or needed not be.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import acting as reach
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.reconfigure import downgrade


def main() -> None:
    module = AnsibleModule(
        argument_spec={**reach.OPTIONS, "version": {"type": "str", "default": ""}},
        supports_check_mode=True,
    )

    def tell(to: reach.Reached) -> bool:
        return downgrade(to.connection, to.found, module.params["version"], dry_run=module.check_mode)

    reach.end(module, tell)


if __name__ == "__main__":
    main()
