#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Server-side apply without discovery."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kube_apply
short_description: Apply Kubernetes objects in order
description:
  - Applies objects by server-side apply, one after the other, as the field manager C(etcdops).
  - Knows only the kinds that an etcd cluster consists of, and so needs no discovery.
  - An object with C(metadata.uid) is applied only if it is still the one with that uid, and with the same
    C(metadata.generation) or, where it has none, C(metadata.resourceVersion). With an empty uid it is created, if there
    is none. If it has changed, that is not a failure. RV(refused) says so, and nothing after it is applied.
author: The etcdops authors
options:
  objects:
    description: The complete objects, with namespace and name.
    type: list
    elements: dict
    required: true
  create_only:
    description: Whether to create missing objects only, and leave existing ones unchanged.
    type: bool
    default: false
extends_documentation_fragment:
  - etcdops.etcd.kube
"""

EXAMPLES = r"""
- name: Apply a ConfigMap
  etcdops.etcd.kube_apply:
    objects:
      - apiVersion: v1
        kind: ConfigMap
        metadata: {namespace: default, name: example}
        data: {hello: world}
"""

RETURN = r"""
applied:
  description: The objects that were applied, as Kind/name.
  type: list
  elements: str
  returned: success
refused:
  description: Why not all objects were applied; empty when they were.
  type: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import effects
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import connect
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.errors import KubeError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "objects": {"type": "list", "elements": "dict", "required": True},
            "create_only": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    objects, create_only, dry_run = module.params["objects"], module.params["create_only"], module.check_mode
    make = effects.create_all if create_only else effects.apply_all
    try:
        done = make(connect(), objects, dry_run=dry_run)
    except KubeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=done.changed, applied=done.names, refused=done.refused)


if __name__ == "__main__":
    main()
