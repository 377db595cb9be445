#!/usr/bin/python
"""Ansible module: a checked snapshot of an etcd cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_snapshot
short_description: Save a checked snapshot of an etcd cluster, or delete one
version_added: "0.1.0"
description:
  - Streams a snapshot from a healthy follower to a file or to an S3-compatible store, with little memory whatever its
    size. If that member fails meanwhile, the next one is tried.
  - A snapshot has its name only when it is complete and its sha256 was verified. Nothing is ever overwritten, and a
    failure leaves nothing behind.
  - If O(dest) exists already, nothing is done.
options:
  dest:
    description:
      - Where the snapshot is stored, as a path on the machine where the module runs or as C(s3://bucket/key).
    type: str
    required: true
  state:
    description:
      - V(present) saves a snapshot.
      - V(absent) deletes it, and what a killed save left of it.
    type: str
    choices: [present, absent]
    default: present
  compress:
    description:
      - Whether to compress the snapshot with zstd.
    type: bool
    default: false
  recipients_file:
    description:
      - Encrypt the snapshot with age for the public keys (C(age1…)) in this file, one in a line.
    type: path
  identity_file:
    description:
      - Encrypt the snapshot with age for the owner of the private key (C(AGE-SECRET-KEY-1…)) in this file. Ignored with
        O(recipients_file), which is safer, because the machine that saves can't decrypt.
    type: path
  check:
    description:
      - Whether to verify the snapshot with C(etcdutl snapshot status) before it gets its name.
      - A snapshot that is compressed, encrypted or sent to a store is then also written to a temporary file.
    type: bool
    default: true
  etcdutl:
    description:
      - The program C(etcdutl) of about the cluster's version.
    type: str
    default: etcdutl
  copy:
    description:
      - Also write the plain snapshot to this file, replacing what is there.
    type: path
  wait:
    description:
      - For how many seconds to retry while no member is healthy, as during a leader election.
    type: int
    default: 60
attributes:
  check_mode:
    support: full
    description: Reports whether it would save or delete. It does not check whether the destination can be written.
  diff_mode:
    support: none
    description: Snapshots are not compared.
extends_documentation_fragment:
  - etcdops.etcd.etcd
  - etcdops.etcd.snapshot
requirements:
  - hpack
  - obstore, for object stores
  - zstandard, for compression
  - pyrage, for encryption
seealso:
  - module: etcdops.etcd.etcd_snapshot_info
  - module: etcdops.etcd.etcd_restore
author:
  - The etcdops authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Save a snapshot to a file
  etcdops.etcd.etcd_snapshot:
    dest: /var/backups/etcd/2026-11-16.db

- name: Save one to S3, compressed and encrypted
  etcdops.etcd.etcd_snapshot:
    endpoints: ["https://10.0.0.1:2379", "https://10.0.0.2:2379"]
    ca_cert: /etc/etcd/pki/ca.crt
    client_cert: /etc/etcd/pki/client.crt
    client_key: /etc/etcd/pki/client.key
    dest: s3://backups/etcd/2026-11-16.db.zst.age
    s3_endpoint: https://s3.example.com
    compress: true
    recipients_file: /etc/etcd/backup-recipients

- name: Delete a snapshot
  etcdops.etcd.etcd_snapshot:
    dest: s3://backups/etcd/2026-11-16.db.zst.age
    s3_endpoint: https://s3.example.com
    state: absent
"""

RETURN = r"""
location:
  description: Where the snapshot is stored, as O(dest).
  returned: success
  type: str
  sample: /var/backups/etcd/2026-11-16.db
size:
  description: The size in bytes as stored.
  returned: when a snapshot was saved
  type: int
  sample: 20512
sha256:
  description: The sha256 of what is stored, as C(sha256sum) prints it.
  returned: when a snapshot was saved
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
snapshot_size:
  description: The size in bytes of the plain snapshot.
  returned: when a snapshot was saved
  type: int
  sample: 20512
member:
  description: The name of the member that the snapshot was taken from.
  returned: when a snapshot was saved
  type: str
  sample: m1
version:
  description: The version of that member.
  returned: when a snapshot was saved
  type: str
  sample: 3.6.16
cluster_id:
  description: The cluster's ID in hexadecimal.
  returned: when a snapshot was saved
  type: str
  sample: a3524d4a4a14a3c0
seconds:
  description: How long the stream took.
  returned: when a snapshot was saved
  type: float
  sample: 1.25
hash:
  description: The hash of the content, as C(etcdutl snapshot status) prints it.
  returned: when a snapshot was saved and checked
  type: str
  sample: cf0550fb
revision:
  description: The revision of the key space.
  returned: when a snapshot was saved and checked
  type: int
  sample: 42
total_keys:
  description: The number of entries, old revisions included.
  returned: when a snapshot was saved and checked
  type: int
  sample: 7
storage_version:
  description: The storage version; empty in 3.5.
  returned: when a snapshot was saved and checked
  type: str
  sample: 3.6.0
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.connection import Connection
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.endpoint import Endpoint, Tls
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import UNAVAILABLE, EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.module import Result, connection_of, make_module
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import ClusterView, MemberView, look
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots import codec, store
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.errors import StoreError
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.files import FlushedFile
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.hashing import HashedWriter
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.location import Location, location
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.module import (
    OPTIONS,
    end,
    identities_in,
    recipients_in,
    s3_settings,
    snapshot_status,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.stream import snapshot


@dataclass(frozen=True)
class _Target:
    """Where and in which form a snapshot is stored."""

    where: Location
    recipients: list[str]
    compress: bool

    @property
    def plain(self) -> bool:
        return not self.compress and not self.recipients


def main() -> None:
    module = make_module(
        {
            "dest": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "compress": {"type": "bool", "default": False},
            "recipients_file": {"type": "path"},
            "identity_file": {"type": "path"},
            "check": {"type": "bool", "default": True},
            "etcdutl": {"type": "str", "default": "etcdutl"},
            "copy": {"type": "path"},
            "wait": {"type": "int", "default": 60},
            **OPTIONS,
        }
    )
    work = _delete if module.params["state"] == "absent" else _save
    end(module, lambda: work(module), (EtcdError, StoreError))


def _delete(module: AnsibleModule) -> Result:
    where, s3 = location(module.params["dest"]), s3_settings(module.params)
    there = store.exists(where, s3) if module.check_mode else store.delete(where, s3)
    return {"changed": there, "location": str(where)}


def _save(module: AnsibleModule) -> Result:
    params = module.params
    where, s3 = location(params["dest"]), s3_settings(params)
    if store.exists(where, s3) or module.check_mode:
        return {"changed": not store.exists(where, s3), "location": str(where)}
    target = _Target(where, _recipients(params), params["compress"])
    connection = connection_of(params)
    ends = time.monotonic() + params["wait"]
    try:
        while True:
            try:
                return {"changed": True, **_ask(module, connection, target)}
            except EtcdError as error:
                if error.final or time.monotonic() > ends:
                    raise
            time.sleep(1)  # a leader election may be running
    finally:
        connection.close()


def _ask(module: AnsibleModule, connection: Connection, target: _Target) -> Result:
    """Try one member after the other."""
    endpoints = module.params["endpoints"]
    view = look(connection, endpoints).require_members()
    last: EtcdError = EtcdError(UNAVAILABLE, "no member of the cluster is healthy enough for a snapshot")
    for one in candidates(view, endpoints):
        try:
            return _take(module, connection, one, target) | _origin(view, one)
        except EtcdError as error:  # the next member may succeed
            if error.final:
                raise
            last = error
    raise last


def candidates(view: ClusterView, endpoints: list[str]) -> list[MemberView]:
    """Members to try: healthy voters, the leader last, else in the order of `endpoints`."""
    order = {url: number for number, url in enumerate(endpoints)}
    usable = [one for one in view.voters if one.healthy and "CORRUPT" not in one.alarms]
    return sorted(usable, key=lambda one: (one.member.id == view.leader_id, order.get(one.url, len(order))))


def _origin(view: ClusterView, one: MemberView) -> Result:
    return {"member": one.member.name, "version": one.version, "cluster_id": f"{view.cluster_id:x}"}


def _take(module: AnsibleModule, connection: Connection, one: MemberView, target: _Target) -> Result:
    params, started = module.params, time.monotonic()
    token = connection.client(one.url).token
    checked: Result = {}
    with (
        _plain_copy(params) as copy,
        snapshot(Endpoint(one.url), connection.tls or Tls(), token) as stream,
        store.writing(target.where, s3_settings(params), stream.length) as writer,
    ):
        source: codec.BufferReader = _Tee(stream, copy) if copy else stream
        stored = None if target.plain else HashedWriter(writer)  # the stream hashes a plain snapshot
        codec.encode(source, stored or writer, compress=target.compress, recipients=target.recipients)
        seconds = time.monotonic() - started
        if params["check"]:
            plain: Any = copy or writer
            plain.flush()
            checked = snapshot_status(params["etcdutl"], plain.name)
    return {
        "location": str(target.where),
        "size": stored.size if stored else stream.size,
        "sha256": stored.sha256 if stored else stream.sha256,
        "snapshot_size": stream.size,
        "seconds": round(seconds, 3),
        **checked,
    }


@contextmanager
def _plain_copy(params: dict[str, Any]) -> Iterator[Any]:
    """A file for the plain snapshot, where the user wants one or the check needs one."""
    remote = bool(location(params["dest"]).scheme)
    if params["copy"]:
        with Path(params["copy"]).open("wb", buffering=0) as file:
            yield FlushedFile(file)
    elif params["check"] and (remote or params["compress"] or params["recipients_file"] or params["identity_file"]):
        folder = None if remote else str(_existing(Path(params["dest"]).parent))
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".etcd-snapshot-", suffix=".db", buffering=0) as scratch:
            yield FlushedFile(scratch)
    else:
        yield None


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


class _Tee:
    """Reads from a source, and writes what it reads to a file too."""

    def __init__(self, source: codec.BufferReader, file: Any) -> None:
        self._source = source
        self._file = file

    def readinto(self, buffer: memoryview) -> int:
        size = self._source.readinto(buffer)
        self._copy(buffer[:size])
        return size

    def read(self, limit: int = 1 << 20) -> bytes:
        data = self._source.read(limit)
        self._copy(data)
        return data

    def _copy(self, data: bytes | memoryview) -> None:
        try:
            self._file.write(data)
        except OSError as error:  # of the copy, not of the destination
            name = self._file.name
            raise StoreError(f"the copy that is checked, {name}, can't be written: {error.strerror}") from error


def _recipients(params: dict[str, Any]) -> list[str]:
    if params["recipients_file"]:
        return recipients_in(params["recipients_file"])
    identities = identities_in(params["identity_file"])
    return codec.recipients_of(identities) if identities else []


if __name__ == "__main__":
    main()
