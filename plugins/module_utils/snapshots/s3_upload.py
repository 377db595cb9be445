"""The two ways that an object goes to S3: in one request when its size is known at the start, else in parts.

In one, the store has half the work: parts have to be put together. In parts, each can be sent again.
"""

from __future__ import annotations

import base64
import http.client
import queue
import zlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from .codec import BrokenError

AT_ONCE = 2
LARGEST = 5 << 30  # the most that S3 takes in one request
_PART = 5 << 20  # the least that S3 takes; 10000 of them, the most that it takes, are more than etcd can hold
_HELD = 32  # bytes
_CHUNK = 1 << 20
CHECKSUM = "x-amz-checksum-crc32"  # of those that S3 knows the quickest here and, done by the processor, there
_LINE = b"\r\n"


def chunked(size: int) -> dict[str, str]:
    """The headers of a request whose body is an object of that size, in chunks, with its checksum at the end.

    As AWS's own clients send it: the store finds out by itself whether all came as it was sent.
    """
    full, rest = divmod(size, _CHUNK)
    heads = full * len(_head(_CHUNK)) + (len(_head(rest)) if rest else 0)
    ends = (full + bool(rest)) * len(_LINE)
    return {
        "Content-Length": str(heads + size + ends + len(_end(0))),
        "Content-Encoding": "aws-chunked",
        "x-amz-decoded-content-length": str(size),
        "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-trailer": CHECKSUM,
    }


def _head(size: int) -> bytes:
    return b"%x" % size + _LINE


def _end(crc: int) -> bytes:
    return b"0" + _LINE + f"{CHECKSUM}:{_base64(crc)}".encode() + _LINE + _LINE


def _base64(crc: int) -> str:
    return base64.b64encode(crc.to_bytes(4)).decode()


class Whole:
    """Sends an object in one request. Its last bytes wait for the end: without them, there is no object."""

    def __init__(self, connection: http.client.HTTPConnection, size: int) -> None:
        self._connection = connection
        self.size = size
        self._left = size  # to be written
        self._sent = 0
        self._crc = 0
        self._held = b""

    def write(self, data: bytes | memoryview) -> int:
        now = max(0, min(len(data), self._left - _HELD))
        try:
            self._send(memoryview(data)[:now])
        except OSError as error:
            raise BrokenError(f"the upload broke off: {error}") from error
        self._held += data[now:]
        self._left -= len(data)
        return len(data)

    @property
    def checksum(self) -> str:
        """Of all that was sent, as S3 writes it."""
        return _base64(self._crc)

    def end(self) -> http.client.HTTPResponse:
        """What the store answers."""
        if self._left:
            raise BrokenError(f"the snapshot is not as large as etcd said: {self._left} bytes are missing")
        self._send(memoryview(self._held))
        self._connection.send(_LINE + _end(self._crc))
        return self._connection.getresponse()

    def _send(self, data: memoryview) -> None:
        while data:
            within = self._sent % _CHUNK
            if within == 0:
                self._connection.send((_LINE if self._sent else b"") + _head(min(_CHUNK, self.size - self._sent)))
            piece, data = data[: _CHUNK - within], data[_CHUNK - within :]
            self._connection.send(piece)
            self._crc = zlib.crc32(piece, self._crc)
            self._sent += len(piece)


class Upload:
    """Collects bytes into parts and sends a few of them side by side. The memory of one that was sent is used again."""

    def __init__(self, send: Callable[[int, memoryview], str], pool: ThreadPoolExecutor) -> None:
        self._send = send
        self._pool = pool
        self._parts: list[Future[str]] = []
        self._free: queue.SimpleQueue[memoryview] = queue.SimpleQueue()
        for _ in range(AT_ONCE):
            self._free.put(memoryview(bytearray(_PART)))
        self._part, self._filled = memoryview(bytearray(_PART)), 0

    def write(self, data: bytes | memoryview) -> int:
        rest = memoryview(data)
        while rest:
            if self._filled == _PART:
                self._flush()
            piece = rest[: _PART - self._filled]
            self._part[self._filled : self._filled + len(piece)] = piece
            self._filled += len(piece)
            rest = rest[len(piece) :]
        return len(data)

    def end(self) -> list[str]:
        """What the store calls each part."""
        if self._filled or not self._parts:
            self._flush()
        return [part.result() for part in self._parts]

    def _flush(self) -> None:
        self._parts.append(self._pool.submit(self._sent, len(self._parts) + 1, self._part, self._filled))
        self._part, self._filled = self._free.get(), 0  # no more in memory than are under way
        for part in self._parts[-AT_ONCE - 1 :]:  # a failure is heard of early
            if part.done():
                part.result()

    def _sent(self, number: int, part: memoryview, size: int) -> str:
        try:
            return self._send(number, part[:size])
        finally:
            self._free.put(part)
