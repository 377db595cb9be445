"""Encode and decode stored snapshots: plain, compressed (zstd), encrypted (age), or both. The content tells which.

Both are common formats: `age --decrypt -i KEY FILE | zstd -d` reads them without etcdops.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from .errors import StoreError, WrongKeyError

_PIECE = 1 << 20
_AGE = b"age-encryption.org/"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BOLT = b"\xed\xda\x0c\xed"  # at byte 16 of the database
_HEAD = 32  # bytes that tell a format
_DIGEST = hashlib.sha256().digest_size
_SECTOR = 512
_WINDOW = 8 << 20  # bytes of memory that a compressed snapshot may ask for; zstd needs more only with --ultra or --long


class Reader(Protocol):
    def read(self, limit: int = ..., /) -> bytes: ...


class BufferReader(Reader, Protocol):
    """A reader that fills the caller's buffer: fresh memory for every piece would cost more than the data."""

    def readinto(self, buffer: memoryview, /) -> int: ...


class Writer(Protocol):
    """A target that keeps no reference to the data: the caller may reuse its buffer."""

    def write(self, data: bytes | memoryview, /) -> int: ...


def encode(source: BufferReader, target: Writer, *, compress: bool, recipients: Sequence[str]) -> None:
    """Copy a snapshot into its stored form; `recipients` are age public keys."""
    if compress:
        import zstandard  # noqa: PLC0415  imported when needed, as all formats

        plain: Any = source  # only read() is used
        source = zstandard.ZstdCompressor(level=1).stream_reader(plain)
    if recipients:
        import pyrage  # noqa: PLC0415

        pyrage.encrypt_io(source, _Flushing(target), _recipients(pyrage, recipients))
    else:
        _copy_ahead(source, target)


def decode(source: Reader, target: Writer, identities: Sequence[str], limit: int | None = None) -> None:
    """Copy a stored snapshot into its plain form. StoreError when it is damaged, truncated, or not a snapshot.

    Or when it has more than `limit` bytes: a few compressed ones can become any number of them.
    """
    plain = _Plain(target, limit)
    peeked = _Peeked(source)
    if peeked.head.startswith(_AGE):
        _decrypt(peeked, plain, identities)
    else:
        copy(peeked, plain)
    plain.end()


def check_recipients(recipients: Sequence[str]) -> None:
    """StoreError when one is not an age public key."""
    import pyrage  # noqa: PLC0415

    _recipients(pyrage, recipients)


def recipients_of(identities: Sequence[str]) -> list[str]:
    """The public keys of private keys."""
    import pyrage  # noqa: PLC0415

    return [str(each.to_public()) for each in _identities(pyrage, identities)]


def _copy_ahead(source: BufferReader, target: Writer) -> None:
    """Copy, reading the next piece while one is written."""
    filling, full = (memoryview(bytearray(_PIECE)) for _ in range(2))
    with ThreadPoolExecutor(1) as ahead:
        reading = ahead.submit(source.readinto, filling)
        while size := reading.result():
            filling, full = full, filling
            reading = ahead.submit(source.readinto, filling)
            target.write(full[:size])


def copy(source: Reader, target: Writer) -> None:
    while piece := source.read(_PIECE):
        target.write(piece)


def _decrypt(source: Reader, target: Writer, identities: Sequence[str]) -> None:
    import pyrage  # noqa: PLC0415

    if not identities:
        raise StoreError("the snapshot is encrypted, and no key was given")
    keys = _identities(pyrage, identities)
    try:
        pyrage.decrypt_io(source, _Flushing(target), keys)
    except pyrage.DecryptError as error:
        raise WrongKeyError(f"the snapshot can't be decrypted: {error}; is the key the right one?") from error
    except OSError as error:
        if error.errno is not None:  # an error of the disk, not of the format
            raise
        raise StoreError(f"the encrypted snapshot is damaged or truncated: {error}") from error


def _recipients(pyrage: Any, recipients: Sequence[str]) -> list[Any]:
    try:
        return [pyrage.x25519.Recipient.from_str(each) for each in recipients]
    except pyrage.RecipientError as error:
        raise StoreError(f"a recipient for encryption is not an age public key (age1…): {error}") from error


def _identities(pyrage: Any, identities: Sequence[str]) -> list[Any]:
    try:
        return [pyrage.x25519.Identity.from_str(each) for each in identities]
    except pyrage.IdentityError as error:
        raise StoreError(f"the key for encryption is not an age identity (AGE-SECRET-KEY-1…): {error}") from error


class _Peeked:
    """A reader whose first bytes are known."""

    def __init__(self, source: Reader) -> None:
        self._source = source
        self.head = b""
        while len(self.head) < _HEAD and (more := source.read(_HEAD - len(self.head))):
            self.head += more
        self._first = self.head

    def read(self, limit: int = _PIECE) -> bytes:
        if self._first:
            piece, self._first = self._first[:limit], self._first[limit:]
            return piece
        return self._source.read(limit)


class _Plain:
    """Takes a snapshot, compressed or not, passes it on plain, and verifies the hash at its end."""

    def __init__(self, target: Writer, limit: int | None) -> None:
        self._checked = _Checked(target, limit)
        self._head = b""
        self._next: Writer | None = None  # set when the first bytes are known

    def write(self, data: bytes | memoryview) -> int:
        if self._next is None:
            self._head += data
            if len(self._head) >= _HEAD:
                self._next = self._begin()
                self._forward(self._next, self._head)
        else:
            self._forward(self._next, data)
        return len(data)

    def end(self) -> None:
        if self._next is None:
            raise StoreError(f"not an etcd snapshot: it has {len(self._head)} bytes")
        self._checked.end()

    def _begin(self) -> Writer:
        if not self._head.startswith(_ZSTD):
            return self._checked
        import zstandard  # noqa: PLC0415

        # It writes small pieces, even when a few bytes decompress to gigabytes.
        checked: Any = self._checked  # only write() is used
        return zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_writer(checked, closefd=False)

    @staticmethod
    def _forward(target: Writer, data: bytes | memoryview) -> None:
        if isinstance(target, _Checked):
            target.write(data)
            return
        import zstandard  # noqa: PLC0415

        try:
            target.write(data)
        except zstandard.ZstdError as error:
            raise StoreError(f"the compressed snapshot is damaged: {error}") from error


class _Checked:
    """Passes a plain snapshot on, and knows at its end whether it is complete and undamaged."""

    def __init__(self, target: Writer, limit: int | None) -> None:
        self._target, self._limit = target, limit
        self._hash = hashlib.sha256()
        self._held = b""  # possibly the hash at the end
        self._size = 0

    def write(self, data: bytes | memoryview) -> int:
        if self._size == 0 and data[16:20] != _BOLT:
            raise StoreError("not an etcd snapshot: neither an etcd database nor a compressed or encrypted one")
        self._size += len(data)
        if self._limit is not None and self._size > self._limit:
            raise StoreError(
                f"the plain snapshot is larger than {self._limit >> 20} MiB: what max_size allows, or 80 % of the free "
                "space"
            )
        self._target.write(data)
        joined = self._held + data
        self._hash.update(joined[:-_DIGEST])
        self._held = joined[-_DIGEST:]
        return len(data)

    def end(self) -> None:
        if self._size % _SECTOR != _DIGEST:
            raise StoreError(f"the snapshot is truncated: {self._size} bytes are not whole pages and a hash")
        if self._held != self._hash.digest():
            raise StoreError("the snapshot is damaged: its content does not match the sha256 at its end")


class _Flushing:
    """A writer with the flush() that pyrage calls."""

    def __init__(self, target: Writer) -> None:
        self.write = target.write

    def flush(self) -> None:
        """Nothing is buffered."""
