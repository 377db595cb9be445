#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""Trigger a reconcile when the readiness of members changes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_nudge
short_description: Trigger a reconcile of an EtcdCluster because readiness changed
description:
  - Writes the names of the ready pods into an annotation of the EtcdCluster. The operator watches annotations, so it
    reconciles at once. When the same pods are ready as before, nothing is written.
author: The etcdops authors
options:
  endpoints:
    description: The endpoints of an EndpointSlice.
    type: list
    elements: dict
    required: true
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.etcdcluster
"""

EXAMPLES = r"""
- name: Record that one member is ready
  etcdops.etcd.etcdcluster_nudge:
    namespace: default
    name: example
    endpoints:
      - {conditions: {ready: true}, targetRef: {kind: Pod, name: example-0}}
"""

RETURN = r"""
ready:
  description: The pods that are ready.
  type: list
  elements: str
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import client as kube

READY = "etcdops.dev/ready"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "namespace": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "endpoints": {"type": "list", "elements": "dict", "required": True},
        },
        supports_check_mode=True,
    )
    namespace, name = module.params["namespace"], module.params["name"]
    ready = sorted(filter(None, map(_ready_pod, module.params["endpoints"])))
    try:
        changed = _say(namespace, name, ",".join(ready), write=not module.check_mode)
    except kube.KubeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, ready=ready)


def _ready_pod(endpoint: dict[str, Any]) -> str:
    """The name of its pod, "" when that is not ready."""
    ready = (endpoint.get("conditions") or {}).get("ready")
    return (endpoint.get("targetRef") or {}).get("name", "") if ready else ""


def _say(namespace: str, name: str, ready: str, *, write: bool) -> bool:
    api = kube.connect()
    cluster = api.get("EtcdCluster", namespace, name)
    if cluster is None or "deletionTimestamp" in cluster["metadata"]:
        return False
    if (cluster["metadata"].get("annotations") or {}).get(READY, "") == ready:
        return False
    if write:
        api.annotate("EtcdCluster", namespace, name, {READY: ready})
    return True


if __name__ == "__main__":
    main()
