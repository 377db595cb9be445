"""A connection whose answers are bounded, in size and in time as a whole: whoever answers may be hostile."""

from __future__ import annotations

import io
import socket
from typing import Any

from .endpoint import Deadline

# Nothing that we ask for is nearly as large. What is parsed needs many times this memory, for each member at once.
LIMIT = 256 << 10


class TooLarge(Exception):  # noqa: N818  a state, not a mistake
    """The answer has more bytes than any answer that is expected."""

    def __str__(self) -> str:
        return f"its answer is larger than {LIMIT >> 10} KiB, so it was not read; is this a client URL of etcd?"


class Wire:
    """What http.client needs of a socket. Every read ends with the deadline of the request, also a slow drip."""

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._socket = connected
        self.fileno, self.close = connected.fileno, connected.close
        self.begin(deadline)

    def begin(self, deadline: Deadline) -> None:
        """Another request."""
        self._deadline, self._left = deadline, LIMIT

    def sendall(self, data: bytes) -> None:
        self._socket.settimeout(self._deadline.left())
        self._socket.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        # The socket stays open until this is closed, also when http.client has closed the socket itself.
        return io.BufferedReader(_Answer(self, self._socket.makefile("rb", buffering=0)))

    def receive(self, raw: io.RawIOBase, buffer: Any) -> int:
        if self._deadline.over:
            raise TimeoutError
        self._socket.settimeout(self._deadline.left())
        received = raw.readinto(buffer) or 0
        self._left -= received
        if self._left < 0:
            raise TooLarge
        return received


class _Answer(io.RawIOBase):
    def __init__(self, wire: Wire, raw: io.RawIOBase) -> None:
        self._wire, self._raw = wire, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._wire.receive(self._raw, buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
