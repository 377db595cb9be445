#!/usr/bin/python
"""Ansible module: a checked snapshot of an etcd cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_snapshot
short_description: Save a checked snapshot of an etcd cluster, or delete one
version_added: "0.1.0"
description:
  - Streams a snapshot from a healthy follower to a file or to an S3-compatible store, with little memory whatever its
    size. If that member is lost on the way, the next one is asked.
  - A snapshot has its name only when it is whole and its own sha256 was found right. Nothing is ever overwritten, and a
    failure leaves nothing behind.
  - If there is something under O(dest) already, nothing is done.
options:
  dest:
    description:
      - Where it is kept, as a path on the machine where the module runs or as C(s3://bucket/key).
    type: str
    required: true
  state:
    description:
      - V(present) saves a snapshot.
      - V(absent) deletes it, and what a save that was killed has left of it.
    type: str
    choices: [present, absent]
    default: present
  compress:
    description:
      - Whether to compress it with zstd.
    type: bool
    default: false
  recipients_file:
    description:
      - Encrypt it with age for the public keys (C(age1…)) in this file, one in a line.
    type: path
  identity_file:
    description:
      - Encrypt it with age for the owner of the private key (C(AGE-SECRET-KEY-1…)) in this file. Of no effect with
        O(recipients_file), which is better, because who saves then can't read.
    type: path
  check:
    description:
      - Whether to have it checked by C(etcdutl snapshot status) before it gets its name.
      - What is compressed, encrypted or sent elsewhere is also written to a temporary file then.
    type: bool
    default: true
  etcdutl:
    description:
      - The program C(etcdutl) of about the cluster's version.
    type: str
    default: etcdutl
  copy:
    description:
      - Also write the plain snapshot to this file, over what is there.
    type: path
  wait:
    description:
      - For how many seconds to try again while no member is healthy, as when a leader is being elected.
    type: int
    default: 60
attributes:
  check_mode:
    support: full
    description: Tells whether it would save or delete. It does not look whether the destination could be written.
  diff_mode:
    support: none
    description: Snapshots are not compared.
extends_documentation_fragment:
  - etcdops.etcd.etcd
  - etcdops.etcd.snapshot
requirements:
  - hpack
  - botocore, for S3 without credentials of its own in the options
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

- name: Delete it
  etcdops.etcd.etcd_snapshot:
    dest: s3://backups/etcd/2026-11-16.db.zst.age
    s3_endpoint: https://s3.example.com
    state: absent
"""

RETURN = r"""
location:
  description: Where it is kept, as O(dest).
  returned: success
  type: str
  sample: /var/backups/etcd/2026-11-16.db
size:
  description: Its size in bytes as it is kept.
  returned: when a snapshot was saved
  type: int
  sample: 20512
sha256:
  description: The sha256 of what is kept, as C(sha256sum) would say.
  returned: when a snapshot was saved
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
snapshot_size:
  description: Its size in bytes when plain.
  returned: when a snapshot was saved
  type: int
  sample: 20512
member:
  description: The name of the member that it was taken from.
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
  description: The hash of its content, as C(etcdutl snapshot status) says.
  returned: when a snapshot was saved and checked
  type: str
  sample: cf0550fb
revision:
  description: The revision of the key space in it.
  returned: when a snapshot was saved and checked
  type: int
  sample: 42
total_keys:
  description: How many entries it has, old revisions included.
  returned: when a snapshot was saved and checked
  type: int
  sample: 7
storage_version:
  description: The version of its storage; empty in 3.5.
  returned: when a snapshot was saved and checked
  type: str
  sample: 3.6.0
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.endpoint import Endpoint, Tls
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import UNAVAILABLE, EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.module import Result, connection_of, make_module
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.connection import Connection
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import ClusterView, MemberView, look
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots import codec, store
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.module import (
    OPTIONS,
    end,
    keys_in,
    s3_settings,
    snapshot_status,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.stream import snapshot


@dataclass(frozen=True)
class _Target:
    """Where a snapshot goes, and how."""

    where: store.Location
    recipients: list[str]
    compress: bool
    whole: bool = False  # in one request, if it goes to a store

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
    end(module, lambda: work(module), (EtcdError, codec.StoreError))


def _delete(module: AnsibleModule) -> Result:
    where, s3 = store.location(module.params["dest"]), s3_settings(module.params)
    there = store.exists(where, s3) if module.check_mode else store.delete(where, s3)
    return {"changed": there, "location": str(where)}


def _save(module: AnsibleModule) -> Result:
    params = module.params
    where, s3 = store.location(params["dest"]), s3_settings(params)
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
            time.sleep(1)  # a leader may just be elected
    finally:
        connection.close()


def _ask(module: AnsibleModule, connection: Connection, target: _Target) -> Result:
    """Ask one member after the other."""
    endpoints = module.params["endpoints"]
    found = look(connection, endpoints).require_members()
    last: EtcdError = EtcdError(UNAVAILABLE, "no member of the cluster is healthy enough for a snapshot")
    for seen in candidates(found, endpoints):
        try:
            return _take(module, connection, seen, target) | _origin(found, seen)
        except EtcdError as error:  # the next one may do better
            if error.final:
                raise
            last = error
    raise last


def candidates(found: ClusterView, endpoints: list[str]) -> list[MemberView]:
    """Who can be asked: healthy voters, the leader last, else in the caller's order."""
    order = {url: number for number, url in enumerate(endpoints)}
    well = [seen for seen in found.members if seen.healthy and not seen.member.is_learner]
    sound = [seen for seen in well if "CORRUPT" not in seen.alarms]
    return sorted(sound, key=lambda seen: (seen.member.id == found.leader_id, order.get(seen.url, len(order))))


def _origin(found: ClusterView, seen: MemberView) -> Result:
    return {
        "member": seen.member.name,
        "version": seen.status.version if seen.status else "",
        "cluster_id": f"{found.cluster_id:x}",
    }


def _take(module: AnsibleModule, connection: Connection, seen: MemberView, target: _Target) -> Result:
    """One try with one member; a second one if a store did not take it in one request."""
    # While etcdutl looks at it, the end of it would be held back for longer than a store may wait.
    if target.plain and not module.params["check"]:
        with suppress(codec.BrokenError):
            return _stream(module, connection, seen, replace(target, whole=True))
    return _stream(module, connection, seen, target)


def _stream(module: AnsibleModule, connection: Connection, seen: MemberView, target: _Target) -> Result:
    params, started = module.params, time.monotonic()
    token = connection.client(seen.url).token
    checked: Result = {}
    with (
        _plain_copy(params) as copy,
        snapshot(Endpoint(seen.url), connection.tls or Tls(), token) as stream,
        store.writing(target.where, s3_settings(params), stream.length if target.whole else None) as writer,
    ):
        source: codec.Filler = _Tee(stream, copy) if copy else stream
        # A plain one is hashed by the stream already.
        stored = None if target.plain else store.Hashed(writer)
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
    """A file for the plain snapshot, where one is wanted, or needed for the check."""
    remote = params["dest"].startswith("s3://")
    if params["copy"]:
        with Path(params["copy"]).open("wb", buffering=0) as file:
            yield store.WrittenBehind(file)
    elif params["check"] and (remote or params["compress"] or params["recipients_file"] or params["identity_file"]):
        folder = None if remote else str(_existing(Path(params["dest"]).parent))
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".etcd-snapshot-", suffix=".db", buffering=0) as scratch:
            yield store.WrittenBehind(scratch)
    else:
        yield None


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


class _Tee:
    """Reads, and writes what it reads to a file as well."""

    def __init__(self, source: codec.Filler, file: Any) -> None:
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
        except OSError as error:  # not the destination's fault
            name = self._file.name
            raise codec.StoreError(f"the copy that is checked, {name}, can't be written: {error.strerror}") from error


def _recipients(params: dict[str, Any]) -> list[str]:
    if params["recipients_file"]:
        return keys_in(params["recipients_file"], "recipients for encryption")
    identities = keys_in(params["identity_file"], "identities for encryption")
    return codec.recipients_of(identities) if identities else []


if __name__ == "__main__":
    main()
