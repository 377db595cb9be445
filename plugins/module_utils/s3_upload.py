"""The two ways that an object goes to S3: in one request when its size is known at the start, else in parts.

In one, the store has half the work: parts have to be put together. In parts, each can be sent again.
"""

from __future__ import annotations

import http.client
import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from .codec import BrokenError

AT_ONCE = 2
LARGEST = 5 << 30  # the most that S3 takes in one request
_PART = 5 << 20  # the least that S3 takes; 10000 of them, the most that it takes, are more than etcd can hold
_HELD = 32  # bytes


class Whole:
    """Sends an object in one request. Its last bytes wait for the end: without them, there is no object."""

    def __init__(self, connection: http.client.HTTPConnection, size: int) -> None:
        self._connection = connection
        self._left = size  # to be written
        self._held = b""

    def write(self, data: bytes | memoryview) -> int:
        now = max(0, min(len(data), self._left - _HELD))
        try:
            self._connection.send(data[:now])
        except OSError as error:
            raise BrokenError(f"the upload broke off: {error}") from error
        self._held += data[now:]
        self._left -= len(data)
        return len(data)

    def end(self) -> http.client.HTTPResponse:
        """What the store answers."""
        if self._left:
            raise BrokenError(f"the snapshot is not as large as etcd said: {self._left} bytes are missing")
        self._connection.send(self._held)
        return self._connection.getresponse()


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
