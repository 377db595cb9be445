from __future__ import annotations

import http.client
import os
import time
import zlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.codec import BrokenError, StoreError, UnsureError
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.s3 import S3, Content, Credentials, Refused, signed
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.s3_upload import Upload, Whole

from ...etcds import Certificates
from ...stores import BUCKET, Store


def test_a_signature_is_the_one_of_aws_own_example() -> None:
    """GET Bucket Lifecycle of https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html"""
    credentials = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    request = ("GET", "examplebucket.s3.amazonaws.com", "/", "lifecycle=")
    nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    given = {"x-amz-content-sha256": nothing}
    headers = signed(credentials, "us-east-1", request, given, datetime(2013, 5, 24, tzinfo=UTC))
    signature = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    assert headers["Authorization"].endswith(f"Signature={signature}")
    assert credentials.secret_key not in repr(credentials)


def test_what_is_given_besides_is_signed_too() -> None:
    credentials, moment = Credentials("key", "secret", "token"), datetime(2013, 5, 24, tzinfo=UTC)
    given = {"x-amz-content-sha256": "e3b0", "x-amz-meta-a": "b", "Content-MD5": "c"}
    headers = signed(credentials, "us-east-1", ("PUT", "host", "/", ""), given, moment)
    names = "host;x-amz-content-sha256;x-amz-date;x-amz-meta-a;x-amz-security-token"
    assert f"SignedHeaders={names}," in headers["Authorization"]
    assert given.items() <= headers.items()


def _losing(monkeypatch: pytest.MonkeyPatch, store: Store, *, times: int) -> S3:
    """A client that never hears whether its upload was completed."""
    client, lost = S3(store.settings()), [0]
    once = client._once

    def losing(request: tuple[str, str, str, str], content: Content) -> http.client.HTTPResponse:
        if lost[0] < times and (b"<CompleteMultipartUpload>" in content.body or lost[0]):
            if not lost[0]:
                once(request, content).read()
            lost[0] += 1
            raise ConnectionResetError
        return once(request, content)

    monkeypatch.setattr(client, "_once", losing)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return client


@pytest.mark.parametrize("times", [1, 2])  # the second time, nothing is heard of the object either
def test_an_upload_is_done_when_its_object_is_there_though_the_answer_was_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    with _losing(monkeypatch, store, times=times).writing(BUCKET, f"lost/{times}") as upload:
        upload.write(b"precious")
    assert store.path(f"lost/{times}").read_bytes() == b"precious"


def test_who_hears_nothing_more_is_unsure(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    client = _losing(monkeypatch, store, times=100)
    with pytest.raises(UnsureError, match="did not say whether"), client.writing(BUCKET, "lost/all") as upload:
        upload.write(b"precious")


@pytest.mark.parametrize("size", [None, 4])
def test_the_object_of_somebody_else_is_not_taken_for_our_own(store: Store, size: int | None) -> None:
    name = f"raced-{size}"

    def race() -> None:
        with client.writing(BUCKET, name, size) as ours:
            ours.write(b"ours")
            with S3(store.settings()).writing(BUCKET, name) as theirs:
                theirs.write(b"theirs")

    client = S3(store.settings())
    with pytest.raises(StoreError, match="exists already"):
        race()
    assert store.path(name).read_bytes() == b"theirs"
    assert client._size_of(BUCKET, name, "another") is None


def test_what_has_a_size_goes_in_one_request(store: Store) -> None:
    content = os.urandom(3_000_000)
    with S3(store.settings()).writing(BUCKET, "whole/x", len(content)) as whole:
        assert isinstance(whole, Whole)
        for start in range(0, len(content), 1 << 20):
            whole.write(memoryview(content)[start : start + (1 << 20)])
    assert store.path("whole/x").read_bytes() == content


def test_without_tls_it_goes_in_parts(certificates: Certificates, tmp_path: Path) -> None:
    plain = Store.start(tmp_path, certificates, secure=False)
    try:
        with S3(plain.settings()).writing(BUCKET, "x", 8) as parts:
            assert isinstance(parts, Upload)
            parts.write(b"precious")
        assert plain.path("x").read_bytes() == b"precious"
    finally:
        plain.end()


@pytest.mark.parametrize("size", [1, 32, 33, (1 << 20) - 1, 1 << 20, (1 << 20) + 20, 2 << 20])
@pytest.mark.parametrize("piece", [1000, 1 << 20])
def test_it_does_not_matter_where_pieces_and_chunks_end(store: Store, size: int, piece: int) -> None:
    content, name = os.urandom(size), f"pieces/{size}-{piece}"
    with S3(store.settings()).writing(BUCKET, name, size) as whole:
        for start in range(0, size, piece):
            whole.write(content[start : start + piece])
    assert store.path(name).read_bytes() == content


def test_a_store_that_tells_nothing_of_what_it_took_is_asked(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Whole, "checksum", "unheard of")
    with S3(store.settings()).writing(BUCKET, "asked", 8) as whole:
        whole.write(b"precious")
    assert store.path("asked").read_bytes() == b"precious"


def test_who_can_not_ask_either_is_unsure(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def size_of(*_: str) -> int:
        raise Refused(403, "403", "Forbidden")

    client = S3(store.settings())
    monkeypatch.setattr(Whole, "checksum", "unheard of")
    monkeypatch.setattr(client, "_size_of", size_of)
    with pytest.raises(UnsureError, match="does not say whether"), client.writing(BUCKET, "unsure", 8) as whole:
        whole.write(b"precious")


def test_parts_that_could_not_be_removed_are_told(certificates: Certificates, tmp_path: Path) -> None:
    """The store goes in the middle."""
    going = Store.start(tmp_path, certificates)
    client = S3(going.settings())

    def upload() -> None:
        with client.writing(BUCKET, "left") as parts:
            parts.write(bytes(6 << 20))
            going.end()
            parts.write(bytes(6 << 20))

    with pytest.raises(UnsureError, match=r"can't be reached.*parts of s3://backups/left may be left"):
        upload()


def test_who_may_not_look_may_still_delete(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    client = S3(store.settings())
    with client.writing(BUCKET, "hidden", 8) as whole:
        whole.write(b"precious")
    monkeypatch.setattr(client, "_found", lambda *_: "403")
    assert client.delete(BUCKET, "hidden")
    assert not store.path("hidden").exists()


def test_what_changes_on_its_way_is_not_taken(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store holds it against the checksum."""
    crc32 = zlib.crc32
    monkeypatch.setattr(zlib, "crc32", lambda data, before=0: crc32(data, before) ^ 1)
    client = S3(store.settings())
    with pytest.raises(BrokenError, match="did not take"), client.writing(BUCKET, "changed", 8) as whole:
        whole.write(b"precious")
    assert not client.exists(BUCKET, "changed")


def test_a_store_that_keeps_chunks_as_they_come_gets_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows of no checksum, and is told by the size that it says."""
    client = S3(store.settings())
    monkeypatch.setattr(Whole, "checksum", "unheard of")
    monkeypatch.setattr(client, "_size_of", lambda *_: 1000)
    with pytest.raises(BrokenError, match="1000 bytes of 8"), client.writing(BUCKET, "kept", 8) as whole:
        whole.write(b"precious")
    assert not client.exists(BUCKET, "kept")


@pytest.mark.parametrize("written", [0, 10, 2_999_999])
def test_what_is_not_all_there_leaves_nothing(store: Store, written: int) -> None:
    client = S3(store.settings())
    with pytest.raises(BrokenError, match="missing"), client.writing(BUCKET, f"short/{written}", 3_000_000) as whole:
        whole.write(bytes(written))
    assert not client.exists(BUCKET, f"short/{written}")


def test_what_is_given_up_leaves_nothing_though_all_was_written(store: Store) -> None:
    def give_up() -> None:
        with client.writing(BUCKET, "given/up", 3_000_000) as whole:
            whole.write(bytes(3_000_000))
            raise ZeroDivisionError

    client = S3(store.settings())
    with pytest.raises(ZeroDivisionError):
        give_up()
    assert not client.exists(BUCKET, "given/up")


def test_a_whole_one_is_done_when_its_object_is_there_though_the_answer_was_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = Whole.end

    def losing(whole: Whole) -> http.client.HTTPResponse:
        end(whole).read()
        raise ConnectionResetError

    monkeypatch.setattr(Whole, "end", losing)
    with S3(store.settings()).writing(BUCKET, "lost/whole", 8) as whole:
        whole.write(b"precious")
    assert store.path("lost/whole").read_bytes() == b"precious"
