"""One gRPC call with a streamed answer, over the part of HTTP/2 (RFC 9113) that it needs.

etcd sends frames of 16 KiB. With grpcio, the time per frame limits the speed of a snapshot; here a frame is a slice of
a large buffer. (h2, which makes an object of each frame, was not measured.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from urllib.parse import unquote

import hpack

from .endpoint import Deadline, Endpoint, Tls, dial, in_words
from .errors import UNKNOWN, EtcdError, Unreachable

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE, _CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _WITH_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_ENABLE_PUSH, _INITIAL_WINDOW_SIZE = 2, 4
_CALL = 1  # the only stream
_HEAD = struct.Struct(">BHBBI")  # of a frame: its length in two parts, kind, flags, stream
_PREFIX = struct.Struct(">BI")  # of a gRPC message: whether it is compressed, its length

_LARGEST_FRAME = 1 << 14
_LARGEST_HEADERS = 1 << 16
_LARGEST_MESSAGE = 4 << 20
_BUFFER = 1 << 20
_LEAST_ROOM = 1 << 16  # a smaller read is not worth a system call
_FIRST_WINDOW = (1 << 16) - 1
# Bytes in flight: enough for a fast network, and not more: they are held in memory when the destination is slow.
_WINDOW = 4 << 20

_CONNECTING = 10.0
# A member that hangs must not block for ever: after so many seconds of silence it gets a PING, after as many again the
# call fails. etcd refuses PINGs more often than every 5 s.
_SILENCE = 10.0

Frame = tuple[int, int, int, memoryview]  # kind, flags, stream, payload


class Violation(Exception):  # noqa: N818  a state, not a mistake
    """The answer violates HTTP/2 or gRPC."""


class Call:
    """A call to one member. Not thread-safe."""

    def __init__(self, endpoint: Endpoint, tls: Tls) -> None:
        self._endpoint = endpoint
        self._greeted = False  # whether anything was received
        self._tls = replace(tls)  # a context of its own: only here HTTP/2 is negotiated
        if endpoint.secure:
            self._tls.context.set_alpn_protocols(["h2"])
        try:
            self._socket = dial(endpoint, self._tls, Deadline(_CONNECTING))
        except (OSError, UnicodeError) as error:
            raise self._lost(error) from error
        self._socket.settimeout(_SILENCE)
        self._decoder = hpack.Decoder()
        self._block = bytearray()  # the header block received so far
        self._final = False  # whether it is the last block

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def answers(self, method: str, request: bytes, metadata: Mapping[str, str]) -> Iterator[memoryview]:
        """Send the request and yield the messages of the answer. EtcdError when the call fails."""
        try:
            self._socket.sendall(opening(self._endpoint, method, request, metadata))
            yield from messages(self._content())
        except OSError as error:
            raise self._lost(error) from error
        except (Violation, hpack.HPACKError, struct.error) as error:
            raise Unreachable(f"it does not speak gRPC as it should: {error}", str(self._endpoint)) from error

    def _lost(self, error: Exception) -> Unreachable:
        if isinstance(error, TimeoutError):
            words = f"nothing came from it for {2 * _SILENCE if self._greeted else _CONNECTING:g} s"
        elif self._greeted and isinstance(error, ConnectionError):
            words = "it broke the connection off"
        else:
            words = in_words(error, self._endpoint, self._tls, self._greeted)
        return Unreachable(words, str(self._endpoint))

    def _content(self) -> Iterator[memoryview]:
        """The payload of the answer's data frames, until its status. The window is refilled as data is consumed."""
        taken = 0
        for kind, flags, stream, payload in self._frames():
            if kind == _DATA:
                yield unpadded(payload) if flags & _PADDED else payload
                if flags & _END_STREAM:
                    raise Violation("the answer ended without a status")
                taken += len(payload)
                if taken >= _WINDOW // 2:
                    self._socket.sendall(_more(0, taken) + _more(_CALL, taken))
                    taken = 0
            elif kind in (_HEADERS, _CONTINUATION):
                if self._headers(kind, flags, payload):
                    return
            else:
                self._control(kind, flags, stream, payload)

    def _frames(self) -> Iterator[Frame]:
        """Whole frames. A payload is valid until the next frame is requested."""
        buffer = bytearray(_BUFFER)
        view = memoryview(buffer)
        start = end = 0
        while True:
            while end - start >= _HEAD.size:
                high, low, kind, flags, stream = _HEAD.unpack_from(buffer, start)
                size = high << 16 | low
                if size > _LARGEST_FRAME:
                    raise Violation("a frame is too large")
                first = start + _HEAD.size
                if first + size > end:
                    break
                start = first + size
                yield kind, flags, stream, view[first:start]
            if start == end:
                start = end = 0
            elif _BUFFER - end < _LEAST_ROOM:
                view[: end - start] = view[start:end]
                start, end = 0, end - start
            end += self._receive(view[end:])

    def _receive(self, room: memoryview) -> int:
        try:
            received = self._socket.recv_into(room)
        except TimeoutError:
            self._socket.sendall(frame(_PING, 0, 0, b"etcdops?"))
            received = self._socket.recv_into(room)
        if not received:
            raise ConnectionResetError
        self._greeted = True
        return received

    def _headers(self, kind: int, flags: int, payload: memoryview) -> bool:
        """Process a header block or a part of it; tells whether the call has succeeded."""
        if kind == _HEADERS:
            self._final = bool(flags & _END_STREAM)
            payload = unpadded(payload) if flags & _PADDED else payload
            self._block = bytearray(payload[5:] if flags & _WITH_PRIORITY else payload)
        else:
            self._block += payload
        if len(self._block) > _LARGEST_HEADERS:
            raise Violation("its headers are too large")
        if flags & _END_HEADERS:
            said = {str(name): str(value) for name, value in self._decoder.decode(bytes(self._block))}
            if refusal := refused(said, self._final, str(self._endpoint)):
                raise refusal
        return self._final and bool(flags & _END_HEADERS)

    def _control(self, kind: int, flags: int, stream: int, payload: memoryview) -> None:
        """Process frames that concern the connection."""
        if kind == _SETTINGS and not flags & _ACK:
            self._socket.sendall(frame(_SETTINGS, _ACK, 0))
        elif kind == _PING and not flags & _ACK:
            self._socket.sendall(frame(_PING, _ACK, 0, bytes(payload)))
        elif kind == _RST_STREAM and stream == _CALL:
            (code,) = struct.unpack(">I", payload)
            raise Unreachable(f"the member reset the stream (code {code})", str(self._endpoint))
        elif kind == _GOAWAY:
            last, code = struct.unpack(">II", payload[:8])
            if last < _CALL or code:  # otherwise it shuts down after this call
                words = bytes(payload[8:]).decode(errors="replace") or f"code {code}"
                raise Unreachable(f"the member closed the connection ({words})", str(self._endpoint))


# -- sending


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return _HEAD.pack(len(payload) >> 16, len(payload) & 0xFFFF, kind, flags, stream) + payload


def opening(endpoint: Endpoint, method: str, request: bytes, metadata: Mapping[str, str]) -> bytes:
    """All frames that start the call."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    headers = {
        ":method": "POST",
        ":scheme": "https" if endpoint.secure else "http",
        ":path": method,
        ":authority": f"{host}:{endpoint.port}",
        "content-type": "application/grpc",
        "te": "trailers",
        **metadata,
    }
    settings = struct.pack(">HIHI", _ENABLE_PUSH, 0, _INITIAL_WINDOW_SIZE, _WINDOW)
    return b"".join(
        [
            _PREFACE,
            frame(_SETTINGS, 0, 0, settings),
            _more(0, _WINDOW - _FIRST_WINDOW),
            frame(_HEADERS, _END_HEADERS, _CALL, hpack.Encoder().encode(list(headers.items()))),
            frame(_DATA, _END_STREAM, _CALL, _PREFIX.pack(0, len(request)) + request),
        ]
    )


def _more(stream: int, size: int) -> bytes:
    return frame(_WINDOW_UPDATE, 0, stream, struct.pack(">I", size))


# -- receiving


def unpadded(payload: memoryview) -> memoryview:
    padding = payload[0] if payload else 0
    if padding >= len(payload):
        raise Violation("there is more padding than payload")
    return payload[1 : len(payload) - padding]


def messages(pieces: Iterable[memoryview]) -> Iterator[memoryview]:
    """gRPC messages, joined from pieces of any size. One is valid until the next is requested."""
    prefix, buffer, message, filled = bytearray(), bytearray(), memoryview(b""), 0
    for piece in pieces:
        start = 0
        while start < len(piece):
            if len(prefix) < _PREFIX.size:
                more = piece[start : start + _PREFIX.size - len(prefix)]
                prefix += more
                start += len(more)
                if len(prefix) < _PREFIX.size:
                    break
                size = _size(prefix)
                buffer = buffer if len(buffer) >= size else bytearray(size)
                message, filled = memoryview(buffer)[:size], 0
            more = piece[start : start + len(message) - filled]
            message[filled : filled + len(more)] = more
            start += len(more)
            filled += len(more)
            if filled == len(message):
                prefix.clear()
                yield message
    if prefix:
        raise Violation("the answer ended within a message")


def _size(prefix: bytearray) -> int:
    compressed, size = _PREFIX.unpack(prefix)
    if compressed:
        raise Violation("a message is compressed, and nobody asked for that")
    if size > _LARGEST_MESSAGE:
        raise Violation(f"a message has {size} bytes")
    return int(size)


def refused(headers: Mapping[str, str], final: bool, endpoint: str) -> EtcdError | None:
    """Why the call failed, by its headers or trailers; None when it did not."""
    http, status = headers.get(":status", "200"), headers.get("grpc-status")
    if http != "200":
        return EtcdError(UNKNOWN, f"answered HTTP {http}; is this a client URL of etcd?", endpoint)
    if status is None and final:
        raise Violation("the answer ended without a status")
    if status in (None, "0"):
        return None
    code = int(status) if status.isdigit() else UNKNOWN
    return EtcdError(code, unquote(headers.get("grpc-message", "")), endpoint)
