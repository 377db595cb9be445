from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.bucket import Bucket
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.errors import StoreError, UnsureError
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.object_store import delete, exists
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.object_store import reading as read_object
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.upload import part_size
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.upload import writing as write_object

from ... import proxies
from ...etcds import Certificates
from ...proxies import Proxy, Request
from ...stores import BUCKET, Store

PART = 5 << 20  # the smallest that S3 takes
SMALL, LARGE = 8, 2 * PART + 1000  # in one request, in three parts


@pytest.fixture(scope="module")
def plain_store(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An S3 server without TLS, so that a proxy can see the requests."""
    started = Store.start(tmp_path_factory.mktemp("plain-s3"), certificates, secure=False)
    try:
        yield started
    finally:
        started.end()


@pytest.fixture
def proxy(plain_store: Store) -> Iterator[Proxy]:
    with proxies.proxying(plain_store.port) as started:
        yield started


@pytest.fixture
def bucket(plain_store: Store, proxy: Proxy) -> Bucket:
    return plain_store.bucket(endpoint=proxy.endpoint, ca=None)


@pytest.fixture
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)


def _write(bucket: Bucket, key: str, content: bytes, piece: int = 1 << 20) -> None:
    with write_object(bucket, key, len(content)) as upload:
        for start in range(0, len(content), piece):
            upload.write(memoryview(content)[start : start + piece])


def _read(bucket: Bucket, key: str) -> bytes:
    found = b""
    with read_object(bucket, key) as source:
        while piece := source.read(100_000):
            found += piece
    return found


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 2 * PART, 3 * PART + 7])
@pytest.mark.parametrize("piece", [70_000, 1 << 20])
def test_content_is_the_same_wherever_pieces_and_parts_end(store: Store, size: int, piece: int) -> None:
    content, key = os.urandom(size), f"sizes/{size}-{piece}"
    _write(store.bucket(), key, content, piece)
    assert store.path(key).read_bytes() == content
    assert _read(store.bucket(), key) == content


def test_small_object_is_one_request_and_large_object_is_parts(bucket: Bucket, proxy: Proxy) -> None:
    _write(bucket, "one/small", bytes(SMALL))
    assert [request.method for request in proxy.seen] == ["HEAD", "PUT"]
    proxy.seen.clear()
    _write(bucket, "one/large", bytes(LARGE))
    assert sum("partNumber=" in request.path for request in proxy.seen) == 3


def test_parts_grow_with_the_size_so_that_ten_thousand_are_enough() -> None:
    assert part_size(0) == part_size(40 << 30) == PART
    for size in (50 << 30, 100 << 30, 1 << 40):
        assert size / part_size(size) < 9001
        assert part_size(size) % (1 << 20) == 0


def test_object_is_not_visible_before_it_is_complete(store: Store) -> None:
    with write_object(store.bucket(), "partial", LARGE) as upload:
        upload.write(bytes(LARGE))
        assert not exists(store.bucket(), "partial")
    assert exists(store.bucket(), "partial")


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_object_that_another_writer_made_meanwhile_is_not_overwritten(store: Store, size: int) -> None:
    key = f"raced-{size}"

    def race() -> None:
        with write_object(store.bucket(), key, size) as ours:
            ours.write(bytes(size))
            _write(store.bucket(), key, b"theirs")

    with pytest.raises(StoreError, match="exists already"):
        race()
    assert store.path(key).read_bytes() == b"theirs"
    assert store.uploads() == []


def test_existing_object_is_not_overwritten(store: Store) -> None:
    _write(store.bucket(), "there", b"first")
    with pytest.raises(StoreError, match=f"s3://{BUCKET}/there exists already"):
        _write(store.bucket(), "there", b"second")
    assert store.path("there").read_bytes() == b"first"


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_failed_writer_leaves_nothing(store: Store, size: int) -> None:
    def fail() -> None:
        with write_object(store.bucket(), "failed", size) as upload:
            upload.write(bytes(size))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not exists(store.bucket(), "failed")
    assert store.uploads() == []


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_upload_whose_answer_is_lost_succeeds_when_the_object_is_there(
    plain_store: Store, bucket: Bucket, proxy: Proxy, no_delay: None, size: int
) -> None:
    def decide(request: Request) -> str:
        last = request.completes or (request.method == "PUT" and "partNumber" not in request.path)
        return proxies.LOSE_ANSWER if last else proxies.PASS

    proxy.decide = decide
    _write(bucket, f"lost/{size}", content := os.urandom(size))
    assert plain_store.path(f"lost/{size}").read_bytes() == content


def test_object_of_another_writer_is_not_taken_for_the_lost_one(
    plain_store: Store, bucket: Bucket, proxy: Proxy, no_delay: None
) -> None:
    def decide(request: Request) -> str:
        if request.method == "PUT":
            plain_store.path("others").write_bytes(b"theirs")
            return proxies.LOSE_REQUEST
        return proxies.PASS

    proxy.decide = decide
    with pytest.raises(StoreError, match="can't be reached"):
        _write(bucket, "others", bytes(6))
    assert plain_store.path("others").read_bytes() == b"theirs"


def test_upload_is_unsure_when_the_store_stops_answering(bucket: Bucket, proxy: Proxy, no_delay: None) -> None:
    gone = []

    def decide(request: Request) -> str:
        gone.extend([request] * request.completes)
        return proxies.LOSE_ANSWER if gone else proxies.PASS

    proxy.decide = decide
    with pytest.raises(UnsureError, match=r"did not say whether it has it: the store http.* can't be reached"):
        _write(bucket, "unsure", bytes(LARGE))


def test_parts_that_could_not_be_removed_are_reported(certificates: Certificates, tmp_path: Path) -> None:
    """The store stops in the middle of an upload."""
    stopping = Store.start(tmp_path, certificates)
    bucket = stopping.bucket()

    def upload() -> None:
        with write_object(bucket, "left", 100 << 20) as parts:
            parts.write(bytes(PART + 1))
            stopping.end()
            for _ in range(20):
                parts.write(bytes(PART))

    with pytest.raises(UnsureError, match=r"can't be reached.*parts of s3://backups/left may be left"):
        upload()


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_content_that_changes_in_transit_is_refused(
    plain_store: Store, bucket: Bucket, proxy: Proxy, size: int
) -> None:
    proxy.decide = lambda request: proxies.CHANGE_BODY if request.method == "PUT" else proxies.PASS
    with pytest.raises(StoreError, match=f"refuses s3://{BUCKET}/changed"):
        _write(bucket, "changed", os.urandom(size))
    assert not plain_store.path("changed").exists()
    assert bucket.abort_uploads("changed") == 0


def test_part_that_is_lost_is_sent_again(plain_store: Store, bucket: Bucket, proxy: Proxy) -> None:
    lost: set[Request] = set()

    def decide(request: Request) -> str:
        if request in lost or "partNumber" not in request.path:
            return proxies.PASS
        lost.add(request)
        return proxies.LOSE_REQUEST

    proxy.decide = decide
    _write(bucket, "again", content := os.urandom(LARGE))
    assert len(lost) == 3
    assert plain_store.path("again").read_bytes() == content


def test_truncated_answer_is_not_taken_for_the_whole_object(bucket: Bucket, proxy: Proxy) -> None:
    _write(bucket, "cut", content := os.urandom(LARGE))
    answers = []

    def cut_first(request: Request) -> str:
        answers.extend([request] * (request.method == "GET"))
        return proxies.CUT_ANSWER if len(answers) == 1 else proxies.PASS

    proxy.decide = cut_first
    assert _read(bucket, "cut") == content
    proxy.decide = lambda request: proxies.CUT_ANSWER if request.method == "GET" else proxies.PASS
    with pytest.raises(StoreError):
        _read(bucket, "cut")


def test_object_can_be_deleted_by_credentials_that_may_not_read(
    plain_store: Store, bucket: Bucket, proxy: Proxy
) -> None:
    _write(bucket, "hidden", b"content")
    proxy.decide = lambda request: proxies.FORBID if request.method == "HEAD" else proxies.PASS
    assert not exists(bucket, "hidden")
    assert delete(bucket, "hidden")
    assert not plain_store.path("hidden").exists()


def test_delete_removes_the_parts_of_a_killed_upload_and_no_others(store: Store) -> None:
    for key in ("killed/x.db", "killed/x.db.zst"):
        _kill_while_uploading(store, key)
    assert len(store.uploads()) > 0
    assert [delete(store.bucket(), "killed/x.db") for _ in range(2)] == [True, False]
    assert len(store.uploads()) > 0
    assert [delete(store.bucket(), "killed/x.db.zst") for _ in range(2)] == [True, False]
    assert store.uploads() == []


def _kill_while_uploading(store: Store, key: str) -> None:
    script = """
        import os, signal, sys, time
        from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots import s3, upload
        endpoint, ca, access_key, secret_key, bucket, key, parts = sys.argv[1:]
        settings = s3.Settings(endpoint, None, True, ca, access_key, secret_key)
        with upload.writing(s3.open_bucket(bucket, settings), key, 1 << 30) as writer:
            for _ in range(20):
                writer.write(bytes(1 << 20))
            while not [name for _, _, names in os.walk(parts) for name in names]:
                time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    options, parts = store.options, str(store.path(".sgwtmp"))
    arguments = [options[f"s3_{name}"] for name in ("endpoint", "ca_cert", "access_key", "secret_key")]
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments, BUCKET, key, parts]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(command, env=environment, check=False).returncode == -9
