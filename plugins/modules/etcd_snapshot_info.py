#!/usr/bin/python
"""Ansible module: verify a snapshot and report its content."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_snapshot_info
short_description: Verify a snapshot of etcd and report its content
version_added: "0.1.0"
description:
  - Reads a snapshot from a file or an S3-compatible store, decrypts and decompresses it if needed, verifies the sha256
    at its end, and runs C(etcdutl snapshot status).
  - It fails when the snapshot is damaged, truncated or not a snapshot. The content tells how it is stored.
options:
  src:
    description:
      - Where the snapshot is stored, as a path on the machine where the module runs or as C(s3://bucket/key).
    type: str
    required: true
  etcdutl:
    description:
      - The program C(etcdutl).
    type: str
    default: etcdutl
  copy:
    description:
      - Also write the plain snapshot to this file, replacing what is there, and skip C(etcdutl snapshot status).
    type: path
attributes:
  check_mode:
    support: full
    description: It only reads; O(copy) is not written.
  diff_mode:
    support: N/A
    description: It changes nothing.
extends_documentation_fragment:
  - etcdops.etcd.snapshot
  - etcdops.etcd.snapshot.fetch
seealso:
  - module: etcdops.etcd.etcd_snapshot
  - module: etcdops.etcd.etcd_restore
author:
  - The etcdops authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Verify last night's snapshot
  etcdops.etcd.etcd_snapshot_info:
    src: /var/backups/etcd/2026-11-16.db
  register: snapshot

- name: Show its content
  ansible.builtin.debug:
    msg: "Revision {{ snapshot.revision }}, {{ snapshot.total_keys }} keys"
"""

RETURN = r"""
location:
  description: Where the snapshot is stored, as O(src).
  returned: success
  type: str
  sample: /var/backups/etcd/2026-11-16.db
size:
  description: The size in bytes as stored.
  returned: success
  type: int
  sample: 20512
sha256:
  description: The sha256 of what is stored.
  returned: success
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
snapshot_size:
  description: The size in bytes of the plain snapshot.
  returned: success
  type: int
  sample: 20512
hash:
  description: The hash of the content, as C(etcdutl snapshot status) prints it.
  returned: success, without O(copy)
  type: str
  sample: cf0550fb
revision:
  description: The revision of the key space.
  returned: success, without O(copy)
  type: int
  sample: 42
total_keys:
  description: The number of entries, old revisions included.
  returned: success, without O(copy)
  type: int
  sample: 7
storage_version:
  description: The storage version; empty in 3.5.
  returned: success, without O(copy)
  type: str
  sample: 3.6.0
"""

import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.module import Result
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.errors import StoreError
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.fetch import Expected, fetch
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.module import (
    FETCH_OPTIONS,
    OPTIONS,
    end,
    identities_in,
    s3_settings,
    snapshot_status,
)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "src": {"type": "str", "required": True},
            "etcdutl": {"type": "str", "default": "etcdutl"},
            "copy": {"type": "path"},
            **FETCH_OPTIONS,
            **OPTIONS,
        },
        supports_check_mode=True,
    )
    end(module, lambda: _verify(module), (StoreError,))


def _verify(module: AnsibleModule) -> Result:
    params = module.params
    if params["copy"] and not module.check_mode:
        return {"changed": True, **_fetch(params, Path(params["copy"]))}
    with tempfile.TemporaryDirectory(prefix="etcd-snapshot-", dir=module.tmpdir) as folder:
        plain = Path(folder) / "snapshot.db"
        found = _fetch(params, plain)
        return {"changed": False, **found, **snapshot_status(params["etcdutl"], str(plain))}


def _fetch(params: dict[str, Any], plain: Path) -> Result:
    identities = identities_in(params["identity_file"])
    return fetch(params["src"], plain, s3_settings(params), identities, Expected(params["sha256"], params["max_size"]))


if __name__ == "__main__":
    main()
