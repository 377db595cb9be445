#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Delete Kubernetes objects without discovery."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kube_delete
short_description: Delete Kubernetes objects
description:
  - Deletes objects by name and uid, by name, or by label, and does not wait until they are gone.
  - Only an object that still has the given uid, or the uid that was read, is deleted.
author: The etcdops authors
options:
  kind:
    description: The kind of the objects.
    type: str
    required: true
    choices:
      - ConfigMap
      - EtcdBackup
      - EtcdCluster
      - Job
      - PersistentVolumeClaim
      - Pod
      - PodDisruptionBudget
      - Secret
      - Service
      - StatefulSet
  namespace:
    description: The namespace of the objects.
    type: str
    required: true
  names:
    description: The names of the objects.
    type: list
    elements: str
    default: []
  objects:
    description: Objects by name and uid; one that has another uid by now is left alone.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The name of the object.
        type: str
        required: true
      uid:
        description: The uid that it must still have.
        type: str
        required: true
      version:
        description: The resourceVersion that it must still have, if nothing about it may have changed.
        type: str
        default: ""
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

- name: Delete exactly this PVC
  etcdops.etcd.kube_delete:
    kind: PersistentVolumeClaim
    namespace: default
    objects:
      - name: data-example-0
        uid: 0b1f3a52-6f6c-4a0b-8f2f-6a1c3f0d9a77
"""

RETURN = r"""
deleted:
  description: The names of the deleted objects.
  type: list
  elements: str
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import effects
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Asked, connect
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import KubeError

_KINDS = [
    "ConfigMap",
    "EtcdBackup",
    "EtcdCluster",
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
            "objects": effects.REFS,
            "selector": {"type": "str"},
            "force": {"type": "bool", "default": False},
            "orphan": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        deleted = _delete(module.params, dry_run=module.check_mode)
    except KubeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(deleted), deleted=deleted)


def _delete(params: dict[str, Any], *, dry_run: bool) -> list[str]:
    kind, namespace = params["kind"], params["namespace"]
    how: effects.How = "force" if params["force"] else "orphan" if params["orphan"] else ""
    asked = [Asked(kind, namespace, name) for name in params["names"]]
    if params["selector"]:
        asked.append(Asked(kind, namespace, selector=params["selector"]))
    api = connect()
    named = effects.delete_refs(api, Asked(kind, namespace), params["objects"], how, dry_run=dry_run)
    return named + (effects.delete_found(api, asked, how, dry_run=dry_run) if asked else [])


if __name__ == "__main__":
    main()
