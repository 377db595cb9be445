from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.stream import Stream, _blob

DATABASE = bytes(range(256)) * 300
WHOLE = DATABASE + hashlib.sha256(DATABASE).digest()


def _number(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def _answer(remaining: int, blob: bytes) -> memoryview:
    """As etcd writes it: header, remaining_bytes (zero is left out), blob, version."""
    header = b"\x08" + _number(1 << 63)
    left = b"\x10" + _number(remaining) if remaining else b""
    return memoryview(
        b"\x0a" + _number(len(header)) + header + left + b"\x1a" + _number(len(blob)) + blob + b"\x22\x053.6.0"
    )


def _stream(content: bytes, size: int = 32768) -> Stream:
    """The database in pieces, each with what is left of it, and then its hash."""

    def blobs() -> Iterator[tuple[int, memoryview]]:
        for start in range(0, len(DATABASE), size):
            stop = min(start + size, len(DATABASE))
            yield _blob(_answer(len(DATABASE) - stop, content[start:stop]))
        yield _blob(_answer(0, content[len(DATABASE) :]))

    return Stream(blobs(), "m0")


def _read(stream: Stream, size: int) -> bytes:
    found, buffer = b"", memoryview(bytearray(size))
    while filled := stream.readinto(buffer):
        found += buffer[:filled]
    return found


@pytest.mark.parametrize("blob", [1000, 32768, len(DATABASE)])
@pytest.mark.parametrize("size", [7000, 32, 1 << 20])
def test_snapshot_is_read_into_buffers_of_any_size(blob: int, size: int) -> None:
    stream = _stream(WHOLE, blob)
    assert stream.length == len(WHOLE)
    assert _read(stream, size) == WHOLE
    assert (stream.size, stream.sha256) == (len(WHOLE), hashlib.sha256(WHOLE).hexdigest())


@pytest.mark.parametrize("content", [WHOLE[:-1], WHOLE[:-40], b"x" + WHOLE[1:], DATABASE])
def test_incomplete_or_damaged_stream_is_refused_at_its_end(content: bytes) -> None:
    with pytest.raises(EtcdError, match="ended early or was damaged"):
        _read(_stream(content), 50_000)


def test_stream_that_does_not_end_where_it_should_is_refused_at_once() -> None:
    endless = iter([(100, memoryview(bytes(100)))] + [(0, memoryview(bytes(100)))] * 1000)
    stream = Stream(endless, "m0")
    with pytest.raises(EtcdError, match="sends more than it announced"):
        _read(stream, 100)
    assert stream.size <= 400


@pytest.mark.parametrize("message", [b"\x10" + b"\xff" * 100_000, b"\x1a\xff", b"\x10"])
def test_endless_or_truncated_number_is_refused(message: bytes) -> None:
    with pytest.raises(EtcdError, match="not a snapshot"):
        _blob(memoryview(message))


def test_empty_stream_is_refused() -> None:
    with pytest.raises(EtcdError, match="the snapshot is empty"):
        _ = Stream(iter([]), "m0").length
