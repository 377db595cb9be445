"""Fetching a snapshot again over the copy of an earlier try."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.fetch import fetch
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.s3 import Settings


class _Usage(NamedTuple):
    free: int


def test_copy_of_an_earlier_try_does_not_count_as_used_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = bytes(16) + b"\xed\xda\x0c\xed" + bytes(40 * 4096 - 20)
    content = body + hashlib.sha256(body).digest()
    (tmp_path / "stored.db").write_bytes(content)
    target = tmp_path / "copy.db"
    disk = int(len(content) * 1.5)  # with the copy on it, there is no room for another one
    monkeypatch.setattr(
        shutil, "disk_usage", lambda _: _Usage(disk - (target.stat().st_size if target.exists() else 0))
    )
    for _ in range(2):
        assert fetch(str(tmp_path / "stored.db"), target, Settings())["snapshot_size"] == len(content)
    assert target.read_bytes() == content
