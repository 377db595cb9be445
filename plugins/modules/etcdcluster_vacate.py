#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Delete PVCs and pods of an EtcdCluster that no member uses, fenced by what etcd answers now."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_vacate
short_description: Delete PVCs and pods that no member of an EtcdCluster uses
description:
  - Asks the members again immediately before the deletion. Nothing is deleted without quorum, or when a member that has
    started belongs to one of the PVCs or pods. Another operator may have added it in the meantime.
  - Pods are deleted by force, because no member is in them and so their nodes need not confirm it.
  - A deletion that can't be made now is not a failure. RV(refused) says why, and the next reconcile decides again.
author: The etcdops authors
options:
  claims:
    description: The PVCs. Each is deleted only if it still has this uid.
    type: list
    elements: dict
    default: []
    suboptions: &ref
      name:
        description: The name. That of a PVC is C(data-) and the name of the pod.
        type: str
        required: true
      uid:
        description: The uid.
        type: str
        required: true
      version:
        description: The resourceVersion, if nothing about the object may have changed.
        type: str
        default: ""
  pods:
    description: The pods. Each is deleted only if it still has this uid.
    type: list
    elements: dict
    default: []
    suboptions: *ref
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.etcdcluster
"""

EXAMPLES = r"""
- name: Delete the PVC of a member that has left
  etcdops.etcd.etcdcluster_vacate:
    namespace: default
    name: example
    claims:
      - name: data-example-3
        uid: 4d1a6cf5-7d0c-4f0b-8f38-9c06a34a0a68
"""

RETURN = r"""
refused:
  description: Why nothing was deleted; empty when the PVCs and pods are deleted or gone.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import acting
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.effects import REFS


def main() -> None:
    module = AnsibleModule(
        argument_spec={**acting.OPTIONS, "claims": REFS, "pods": REFS},
        supports_check_mode=True,
    )
    claims, pods, dry_run = module.params["claims"], module.params["pods"], module.check_mode
    acting.run(module, lambda live: bool(acting.vacate(live, claims, pods, dry_run=dry_run)))


if __name__ == "__main__":
    main()
