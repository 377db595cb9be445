from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.pki import transfer_data
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots import transfer
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.errors import StoreError

from ...etcds import HOST, free_ports


def _secret(folder: Path) -> Path:
    folder.mkdir()
    for name, content in transfer_data(transfer.NAME).items():
        (folder / name).write_bytes(base64.b64decode(content))
    return folder


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "file").write_bytes(b"x" * 3_000_000)
    (port,) = free_ports(1)
    server = transfer.serve(tmp_path / "file", _secret(tmp_path / "ours"), port)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://{HOST}:{port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_client_with_a_certificate_gets_the_file(url: str, tmp_path: Path) -> None:
    found = b""
    with transfer.reading(url, tmp_path / "ours") as source:
        while piece := source.read(1 << 20):
            found += piece
    assert found == b"x" * 3_000_000


def test_client_with_a_foreign_certificate_gets_nothing(url: str, tmp_path: Path) -> None:
    theirs = _secret(tmp_path / "theirs")
    with pytest.raises(StoreError), transfer.reading(url, theirs) as source:
        source.read()
    (theirs / "ca.crt").write_bytes(
        (tmp_path / "ours/ca.crt").read_bytes()
    )  # the client trusts the server, but not the reverse
    with pytest.raises(StoreError), transfer.reading(url, theirs) as source:
        source.read()
