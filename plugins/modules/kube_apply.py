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
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import client as kube
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "objects": {"type": "list", "elements": "dict", "required": True},
            "create_only": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    objects, create_only = module.params["objects"], module.params["create_only"]
    applied: list[str] = []
    changed = False
    try:
        api = kube.connect()
        before = [None] * len(objects) if create_only else _versions(api, objects)
        for manifest, version in zip(objects, before, strict=True):
            if create_only:
                changed |= api.create(manifest, dry_run=module.check_mode) is not None
            else:
                changed |= _version(api.apply(manifest, dry_run=module.check_mode)) != version
            applied.append(f"{manifest['kind']}/{manifest['metadata']['name']}")
    except kube.KubeError as error:
        module.fail_json(msg=str(error), applied=applied)
    module.exit_json(changed=changed, applied=applied)


def _versions(api: kube.Kube, objects: list[Manifest]) -> list[str | None]:
    """As they are now; None where there is none."""
    metas = [(manifest["kind"], manifest["metadata"]) for manifest in objects]
    asked = [kube.Asked(kind, meta["namespace"], meta["name"]) for kind, meta in metas]
    return [_version(found[0]) if found else None for found in api.read(asked)]


def _version(manifest: Manifest) -> str | None:
    version: str | None = manifest["metadata"].get("resourceVersion")
    return version


if __name__ == "__main__":
    main()
