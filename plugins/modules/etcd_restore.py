#!/usr/bin/python
"""Ansible module: make the data of one member from a snapshot."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_restore
short_description: Make a member's data from a snapshot of etcd
version_added: "0.1.0"
description:
  - Fetches a snapshot from a file or an S3-compatible store, verifies it, and makes the data directory of one member of
    a new cluster from it with C(etcdutl snapshot restore).
  - Run it for every member, with the same snapshot, O(initial_cluster) and O(token), before any of them is started.
  - If O(data_dir) exists, nothing is done, unless O(old_data) says where to move it, or O(overwrite) allows to delete
    it.
options:
  state:
    description:
      - V(restored) makes the data.
      - V(put_back) undoes a restore. The restored data is deleted, and the data at O(old_data) is moved back.
      - V(kept) accepts a restore. The data at O(old_data) is deleted.
    type: str
    choices: [restored, put_back, kept]
    default: restored
  src:
    description:
      - Where the snapshot is stored, as a path on the machine where the module runs or as C(s3://bucket/key). Required
        with O(state=restored).
    type: str
  data_dir:
    description:
      - The data directory of the member.
    type: path
    required: true
  old_data:
    description:
      - Where to move an existing data directory; created empty if there is none. If it exists, it is from an earlier,
        unfinished try of the same restore, and what that try made in O(data_dir) is deleted.
    type: path
  overwrite:
    description:
      - Delete an existing data directory. For a volume that was created for this restore, where it can only be what an
        earlier try left. Ignored with O(old_data).
    type: bool
    default: false
  name:
    description:
      - The member's name. Required, like the next three, with O(state=restored) and without O(snapshot).
    type: str
  peer_urls:
    description:
      - The member's peer URLs.
    type: list
    elements: str
  initial_cluster:
    description:
      - All members of the new cluster, as name and peer URL.
    type: dict
  token:
    description:
      - The new cluster's token. A different token gives a different cluster ID, so that members of the old and of the
        new cluster refuse each other.
    type: str
  bump_revision:
    description:
      - By how much to raise the revision. All revisions below are marked compacted, so that a client that watches from
        a revision before the restore gets an error instead of other events under the same revisions.
    type: int
    default: 1000000000
  etcdutl:
    description:
      - The program C(etcdutl) of the version that the member will run.
    type: str
    default: etcdutl
  snapshot:
    description:
      - Only prepare. Write the verified, plain snapshot to this file, and move old data away. The caller then runs
        C(etcdutl); the operator's Jobs do so in a container of the version that the member will run.
    type: path
attributes:
  check_mode:
    support: full
    description: Reports whether it would restore.
  diff_mode:
    support: none
    description: Data is not compared.
extends_documentation_fragment:
  - etcdops.etcd.snapshot
  - etcdops.etcd.snapshot.fetch
seealso:
  - module: etcdops.etcd.etcd_snapshot
  - module: etcdops.etcd.etcd_snapshot_info
author:
  - The etcdops authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Restore a member, with etcd stopped
  etcdops.etcd.etcd_restore:
    src: /var/backups/etcd/2026-11-16.db
    data_dir: /var/lib/etcd
    old_data: /var/lib/etcd.before-restore
    name: m0
    peer_urls: ["http://10.0.0.1:2380"]
    initial_cluster:
      m0: http://10.0.0.1:2380
      m1: http://10.0.0.2:2380
      m2: http://10.0.0.3:2380
    token: restored-2026-11-16
"""

RETURN = r"""
data_dir:
  description: The data directory of the member.
  returned: success
  type: str
  sample: /var/lib/etcd
snapshot_size:
  description: The size in bytes of the plain snapshot.
  returned: when a snapshot was restored
  type: int
  sample: 20512
"""

import shutil
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.module import Result
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.errors import StoreError
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.fetch import Expected, fetch
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.module import (
    FETCH_OPTIONS,
    OPTIONS,
    end,
    identities_in,
    restore_command,
    run_etcdutl,
    s3_settings,
)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["restored", "put_back", "kept"], "default": "restored"},
            "src": {"type": "str"},
            "data_dir": {"type": "path", "required": True},
            "old_data": {"type": "path"},
            "overwrite": {"type": "bool", "default": False},
            "name": {"type": "str"},
            "peer_urls": {"type": "list", "elements": "str"},
            "initial_cluster": {"type": "dict"},
            "token": {"type": "str", "no_log": False},  # a name, not a secret
            "bump_revision": {"type": "int", "default": 1_000_000_000},
            "etcdutl": {"type": "str", "default": "etcdutl"},
            "snapshot": {"type": "path"},
            **FETCH_OPTIONS,
            **OPTIONS,
        },
        required_if=[
            ("state", "restored", ["src"]),
            ("state", "put_back", ["old_data"]),
            ("state", "kept", ["old_data"]),
        ],
        supports_check_mode=True,
    )
    work = {"restored": _restore, "put_back": _put_back, "kept": _keep}[module.params["state"]]
    end(module, lambda: work(module), (StoreError, OSError))


def _put_back(module: AnsibleModule) -> Result:
    data, old = Path(module.params["data_dir"]), Path(module.params["old_data"])
    there = old.exists()
    if there and not module.check_mode:
        if data.exists():
            shutil.rmtree(data)
        if any(old.iterdir()):
            old.rename(data)
        else:  # there was no data before the restore
            old.rmdir()
    return {"changed": there, "data_dir": str(data)}


def _keep(module: AnsibleModule) -> Result:
    old = Path(module.params["old_data"])
    there = old.exists()
    if there and not module.check_mode:
        shutil.rmtree(old)
    return {"changed": there, "data_dir": module.params["data_dir"]}


def _restore(module: AnsibleModule) -> Result:
    params = module.params
    missing = [name for name in ("name", "peer_urls", "initial_cluster", "token") if not params[name]]
    if missing and not params["snapshot"]:
        raise StoreError(f"{', '.join(missing)} must be given, unless snapshot is")
    data = Path(params["data_dir"])
    keep = data.exists() and not params["old_data"] and not params["overwrite"]
    if module.check_mode or keep:
        return {"changed": not keep, "data_dir": str(data)}
    if params["snapshot"]:
        plain = Path(params["snapshot"])
        found = _fetch(module, plain)
        _make_way(data, params["old_data"], overwrite=params["overwrite"])
        return {"changed": True, "data_dir": str(data), **found}
    data.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".etcd-restore-", dir=data.parent) as folder:
        plain = Path(folder) / "snapshot.db"
        found = _fetch(module, plain)
        # Made beside the data directory and renamed when complete: a killed restore leaves no partial data.
        made = Path(folder) / "data"
        options = {
            "data-dir": made,
            "name": params["name"],
            "initial-cluster": ",".join(f"{name}={url}" for name, url in params["initial_cluster"].items()),
            "initial-advertise-peer-urls": ",".join(params["peer_urls"]),
            "initial-cluster-token": params["token"],
        }
        if params["bump_revision"]:
            options |= {"bump-revision": params["bump_revision"], "mark-compacted": "true"}
        run_etcdutl(restore_command(params["etcdutl"], str(plain), options))
        _make_way(data, params["old_data"], overwrite=params["overwrite"])
        made.rename(data)
    return {"changed": True, "data_dir": str(data), **found}


def _fetch(module: AnsibleModule, plain: Path) -> Result:
    params = module.params
    identities = identities_in(params["identity_file"])
    found = fetch(params["src"], plain, s3_settings(params), identities, Expected(params["sha256"], params["max_size"]))
    return {"snapshot_size": found["snapshot_size"]}


def _make_way(data: Path, old_data: str | None, *, overwrite: bool) -> None:
    """Move existing data away, once: a second try must not move its own result."""
    if old_data and not Path(old_data).exists():
        if data.exists():
            data.rename(old_data)
        else:
            Path(old_data).mkdir()
    elif data.exists() and (old_data or overwrite):
        shutil.rmtree(data)


if __name__ == "__main__":
    main()
