#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Deleting Kubernetes objects without discovery."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kube_delete
short_description: Delete Kubernetes objects
description:
  - Deletes objects by name, or by label, and does not wait until they are gone.
author: The etcdops authors
options:
  kind:
    description: Their kind.
    type: str
    required: true
    choices: [ConfigMap, PersistentVolumeClaim, Pod, PodDisruptionBudget, Secret, Service, StatefulSet]
  namespace:
    description: Their namespace.
    type: str
    required: true
  names:
    description: Their names.
    type: list
    elements: str
    default: []
  selector:
    description: A label selector; everything that it finds is deleted.
    type: str
  force:
    description: Whether pods are gone at once, without waiting for their nodes to stop them.
    type: bool
    default: false
  evict:
    description: Whether pods are deleted only if their disruption budget allows it at that moment.
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
  description: The names of what was there.
  type: list
  elements: str
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils import kube

_KINDS = ["ConfigMap", "PersistentVolumeClaim", "Pod", "PodDisruptionBudget", "Secret", "Service", "StatefulSet"]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kind": {"type": "str", "required": True, "choices": _KINDS},
            "namespace": {"type": "str", "required": True},
            "names": {"type": "list", "elements": "str", "default": []},
            "selector": {"type": "str"},
            "force": {"type": "bool", "default": False},
            "evict": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    kind, namespace, force = module.params["kind"], module.params["namespace"], module.params["force"]
    deleted: list[str] = []
    try:
        api = kube.connect()
        found = [api.get(kind, namespace, name) for name in module.params["names"]]
        if selector := module.params["selector"]:
            found += api.list(kind, namespace, selector)
        for manifest in filter(None, found):
            meta = manifest["metadata"]
            if "deletionTimestamp" in meta and not force:
                continue
            if module.check_mode or _delete(api, module.params, meta):
                deleted.append(meta["name"])
    except kube.KubeError as error:
        module.fail_json(msg=str(error), deleted=deleted)
    module.exit_json(changed=bool(deleted), deleted=deleted)


def _delete(api: kube.Kube, params: dict[str, Any], meta: dict[str, Any]) -> bool:
    if params["evict"]:
        return api.evict(meta["namespace"], meta["name"], meta["uid"])
    return api.delete(params["kind"], meta["namespace"], meta["name"], meta["uid"], force=params["force"])


if __name__ == "__main__":
    main()
