#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Delete Kubernetes objects without discovery."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kube_delete
short_description: Delete Kubernetes objects
description:
  - Deletes objects by name or by label, and does not wait until they are gone.
  - Only an object that still has the uid that was read is deleted.
author: The etcdops authors
options:
  kind:
    description: The kind of the objects.
    type: str
    required: true
    choices: [ConfigMap, EtcdBackup, Job, PersistentVolumeClaim, Pod, PodDisruptionBudget, Secret, Service, StatefulSet]
  namespace:
    description: The namespace of the objects.
    type: str
    required: true
  names:
    description: The names of the objects.
    type: list
    elements: str
    default: []
  selector:
    description: A label selector; all objects that match are deleted.
    type: str
  force:
    description: Whether to remove pods at once, without waiting for the kubelet to stop them.
    type: bool
    default: false
  orphan:
    description: Whether to keep dependents, such as the pods of a StatefulSet.
    type: bool
    default: false
extends_documentation_fragment:
  - etcdops.etcd.kube
"""

EXAMPLES = r"""
- name: Delete a pod
  etcdops.etcd.kube_delete:
    kind: Pod
    namespace: default
    names: [example-0]
"""

RETURN = r"""
deleted:
  description: The names of the deleted objects.
  type: list
  elements: str
  returned: always
"""

from itertools import chain
from typing import Literal

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import client as kube

_KINDS = [
    "ConfigMap",
    "EtcdBackup",
    "Job",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "Secret",
    "Service",
    "StatefulSet",
]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kind": {"type": "str", "required": True, "choices": _KINDS},
            "namespace": {"type": "str", "required": True},
            "names": {"type": "list", "elements": "str", "default": []},
            "selector": {"type": "str"},
            "force": {"type": "bool", "default": False},
            "orphan": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    kind, namespace, force = module.params["kind"], module.params["namespace"], module.params["force"]
    how: Literal["", "force", "orphan"] = "force" if force else "orphan" if module.params["orphan"] else ""
    deleted: list[str] = []
    try:
        api = kube.connect()
        asked = [kube.Asked(kind, namespace, name) for name in module.params["names"]]
        if selector := module.params["selector"]:
            asked.append(kube.Asked(kind, namespace, selector=selector))
        for manifest in chain.from_iterable(list(api.read(asked))):
            meta = manifest["metadata"]
            if "deletionTimestamp" in meta and not force:
                continue
            if module.check_mode or api.delete(kind, namespace, meta["name"], meta["uid"], how):
                deleted.append(meta["name"])
    except kube.KubeError as error:
        module.fail_json(msg=str(error), deleted=deleted)
    module.exit_json(changed=bool(deleted), deleted=deleted)


if __name__ == "__main__":
    main()
