#!/usr/bin/python
# Apache License 2.0 (see LICENSE)
"""The last snapshot of an EtcdCluster that is being deleted."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcdcluster_last_snapshot
short_description: Have a last snapshot taken of an EtcdCluster that is being deleted
description:
  - Makes an EtcdBackup as C(spec.deletion.snapshot) says, if it says so, and tells whether it is done. One that failed
    is tried again. Says in the EtcdCluster's status what it waits for.
  - The annotation C(etcdops.dev/let-go=true) of the EtcdCluster does without.
author: The etcdops authors
extends_documentation_fragment:
  - etcdops.etcd.kube
  - etcdops.etcd.kube.etcdcluster
"""

EXAMPLES = r"""
- name: Have it taken
  etcdops.etcd.etcdcluster_last_snapshot:
    namespace: default
    name: example
  register: last
"""

RETURN = r"""
done:
  description: Whether it was taken, or none is wanted.
  type: bool
  returned: always
message:
  description: What is going on, for a person.
  type: str
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils import kube
from ansible_collections.etcdops.etcd.plugins.module_utils.backup import LET_GO
from ansible_collections.etcdops.etcd.plugins.module_utils.last_snapshot import Last, decide, manifest, name_of


def main() -> None:
    module = AnsibleModule(
        argument_spec={"namespace": {"type": "str", "required": True}, "name": {"type": "str", "required": True}},
        supports_check_mode=True,
    )
    try:
        changed, last = _look(module.params["namespace"], module.params["name"], write=not module.check_mode)
    except kube.KubeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, done=last.done, message=last.message)


def _look(namespace: str, name: str, *, write: bool) -> tuple[bool, Last]:
    api = kube.connect()
    cluster = api.get("EtcdCluster", namespace, name)
    if cluster is None:
        return False, Last(True, "The EtcdCluster is gone.")
    status: dict[str, Any] = cluster.get("status", {})
    backup = api.get("EtcdBackup", namespace, name_of(cluster))
    let_go = (cluster["metadata"].get("annotations") or {}).get(LET_GO) == "true"
    last = decide(cluster, None if backup is None else backup.get("status", {}), let_go=let_go)
    if write and last.create:
        try:
            api.create(manifest(cluster))
        except kube.KubeError as error:  # a namespace that is going takes nothing new
            last = Last(False, f"{last.message} That is refused: {error}")
    if write and last.again:
        api.delete("EtcdBackup", namespace, name_of(cluster))
    told = {"phase": "Deleting", "message": last.message}
    changed = not last.done and any(status.get(key) != value for key, value in told.items())
    if write and changed:
        api.patch_status("EtcdCluster", namespace, name, told)
    return changed or last.create or last.again, last


if __name__ == "__main__":
    main()
