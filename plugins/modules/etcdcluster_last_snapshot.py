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

from datetime import UTC, datetime
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.final_snapshot import Last, decide, manifest, name_of
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import client as kube
from ansible_collections.etcdops.etcd.plugins.module_utils.reconcile import run


def main() -> None:
    run(_look)


def _look(namespace: str, name: str, write: bool) -> dict[str, Any]:
    api = kube.connect()
    cluster = api.get("EtcdCluster", namespace, name)
    if cluster is None:
        return {"changed": False, "done": True, "message": "The EtcdCluster is gone."}
    status: dict[str, Any] = cluster.get("status", {})
    last = decide(cluster, api.get("EtcdBackup", namespace, name_of(cluster)), datetime.now(UTC))
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
    return {"changed": changed or last.create or last.again, "done": last.done, "message": last.message}


if __name__ == "__main__":
    main()
