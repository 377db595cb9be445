from __future__ import annotations

import contextlib
import hashlib
import io
import random
import resource

import pyrage
import pytest
import zstandard
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.codec import decode, encode, recipients_of
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.errors import StoreError

IDENTITY = pyrage.x25519.Identity.generate()


def _snapshot(pages: int = 40) -> bytes:
    """Bytes in the form of a snapshot: whole pages with the database's magic, and their sha256."""
    body = bytearray(random.Random(1).randbytes(4096 * pages // 2) + bytes(4096 * pages // 2))  # noqa: S311
    body[16:20] = b"\xed\xda\x0c\xed"
    return bytes(body) + hashlib.sha256(body).digest()


def _encoded(data: bytes, *, compress: bool, encrypt: bool) -> bytes:
    target = io.BytesIO()
    recipients = [str(IDENTITY.to_public())] if encrypt else []
    encode(io.BytesIO(data), target, compress=compress, recipients=recipients)
    return target.getvalue()


def _decoded(data: bytes, *identities: str) -> bytes:
    target = io.BytesIO()
    decode(io.BytesIO(data), target, identities)
    return target.getvalue()


ALL = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.parametrize(("compress", "encrypt"), ALL)
def test_decoding_reverses_encoding(compress: bool, encrypt: bool) -> None:
    plain = _snapshot()
    stored = _encoded(plain, compress=compress, encrypt=encrypt)
    assert _decoded(stored, str(IDENTITY)) == plain
    assert (stored == plain) == (not compress and not encrypt)
    if compress:
        assert len(stored) < len(plain) * 0.7


@pytest.mark.parametrize(("compress", "encrypt"), ALL)
def test_truncated_snapshot_is_refused(compress: bool, encrypt: bool) -> None:
    stored = _encoded(_snapshot(), compress=compress, encrypt=encrypt)
    for length in (0, 10, 33, 700, 5000, len(stored) // 2, len(stored) - 4096, len(stored) - 512, len(stored) - 1):
        with pytest.raises(StoreError):
            _decoded(stored[:length], str(IDENTITY))


@pytest.mark.parametrize(("compress", "encrypt"), ALL)
def test_flipped_bit_is_detected(compress: bool, encrypt: bool) -> None:
    stored = _encoded(_snapshot(), compress=compress, encrypt=encrypt)
    dice = random.Random(2)  # noqa: S311
    for position in [dice.randrange(len(stored)) for _ in range(40)] + [len(stored) - 1]:
        damaged = bytearray(stored)
        damaged[position] ^= 1 << dice.randrange(8)
        with contextlib.suppress(StoreError):
            assert _decoded(bytes(damaged), str(IDENTITY)) == _snapshot(), position  # a bit without meaning


def test_error_says_whether_the_snapshot_or_the_key_is_wrong() -> None:
    with pytest.raises(StoreError, match="not an etcd snapshot"):
        _decoded(b"hello" * 1000)
    secret = _encoded(_snapshot(), compress=True, encrypt=True)
    with pytest.raises(StoreError, match="no key was given"):
        _decoded(secret)
    with pytest.raises(StoreError, match="can't be decrypted"):
        _decoded(secret, str(pyrage.x25519.Identity.generate()))
    with pytest.raises(StoreError, match="not an age identity"):
        _decoded(secret, "not a key")
    with pytest.raises(StoreError, match="not an age public key"):
        encode(io.BytesIO(_snapshot()), io.BytesIO(), compress=False, recipients=["nonsense"])


def test_public_keys_are_derived_from_private_keys() -> None:
    assert recipients_of([str(IDENTITY)]) == [str(IDENTITY.to_public())]


class _Zeros:
    """A large source of zeros, made as it is read."""

    def __init__(self, size: int) -> None:
        self.left = size

    def read(self, limit: int = 1 << 20) -> bytes:
        piece = bytes(min(limit, self.left))
        self.left -= len(piece)
        return piece

    def readinto(self, buffer: memoryview) -> int:
        raise NotImplementedError  # only plain snapshots are read this way


class _Nowhere:
    def write(self, data: bytes | memoryview) -> int:
        return len(data)


def _bomb(size: int, window_log: int = 0) -> io.BytesIO:
    head = bytes(16) + b"\xed\xda\x0c\xed" + bytes(12)
    parameters = zstandard.ZstdCompressionParameters(compression_level=1, window_log=window_log)
    return io.BytesIO(zstandard.ZstdCompressor(compression_params=parameters).compress(head + bytes(size)))


class _Counted(_Nowhere):
    size = 0

    def write(self, data: bytes | memoryview) -> int:
        self.size += len(data)
        return len(data)


def test_snapshot_that_decompresses_to_more_than_the_limit_is_refused_at_the_limit() -> None:
    written = _Counted()
    with pytest.raises(StoreError, match="the plain snapshot is larger than 8 MiB: what max_size allows"):
        decode(_bomb(1 << 28), written, [], 8 << 20)
    assert written.size <= 8 << 20


def test_snapshot_that_needs_much_memory_to_decompress_is_refused() -> None:
    with pytest.raises(StoreError, match=r"the compressed snapshot is damaged: .*memory"):
        decode(_bomb(1 << 28, window_log=27), _Nowhere(), [])


def test_memory_does_not_grow_with_the_size() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    compressed = io.BytesIO()
    encode(_Zeros(1 << 29), compressed, compress=True, recipients=[str(IDENTITY.to_public())])
    compressed.seek(0)
    with pytest.raises(StoreError):  # zeros are not a database
        decode(compressed, _Nowhere(), [str(IDENTITY)])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024
