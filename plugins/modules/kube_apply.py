#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Server-side apply without discovery."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kube_apply
short_description: Apply Kubernetes objects in order
description:
  - Applies objects by server-side apply, one after the other, as the field manager C(etcdops).
  - Knows only the kinds that make an etcd cluster, and so needs no discovery.
author: The etcdops authors
options:
  objects:
    description: The objects, whole, with namespace and name.
    type: list
    elements: dict
    required: true
  create_only:
    description: Whether to make only what is not there, and leave what is there as it is.
    type: bool
    default: false
extends_documentation_fragment:
  - etcdops.etcd.kube
"""

EXAMPLES = r"""
- name: Have a ConfigMap
  etcdops.etcd.kube_apply:
    objects:
      - apiVersion: v1
        kind: ConfigMap
        metadata: {namespace: default, name: example}
        data: {hello: world}
"""

RETURN = r"""
applied:
  description: What was applied, as Kind/name.
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils import kube


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "objects": {"type": "list", "elements": "dict", "required": True},
            "create_only": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    applied: list[str] = []
    changed = False
    try:
        api = kube.connect()
        for manifest in module.params["objects"]:
            meta = manifest["metadata"]
            if module.params["create_only"]:
                changed |= api.create(manifest, dry_run=module.check_mode) is not None
                applied.append(f"{manifest['kind']}/{meta['name']}")
                continue
            before = api.get(manifest["kind"], meta["namespace"], meta["name"])
            after = api.apply(manifest, dry_run=module.check_mode)
            version = (before or {}).get("metadata", {}).get("resourceVersion")
            changed |= version != after["metadata"].get("resourceVersion")
            applied.append(f"{manifest['kind']}/{meta['name']}")
    except kube.KubeError as error:
        module.fail_json(msg=str(error), applied=applied)
    module.exit_json(changed=changed, applied=applied)


if __name__ == "__main__":
    main()
