"""A snapshot of one member, as a stream over gRPC.

The JSON gateway has the same call, but base64 inside JSON makes it three times slower. One call needs no generated
code: a request is empty, an answer has two fields that matter.
"""

from __future__ import annotations

import hashlib
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .etcd import UNAVAILABLE, Endpoint, EtcdError, Tls

_METHOD = "/etcdserverpb.Maintenance/Snapshot"
_REMAINING, _BLOB = 2, 3  # fields of SnapshotResponse
_BATCH = 1 << 20
_DIGEST = hashlib.sha256().digest_size  # a snapshot ends in the sha256 of what precedes it
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    # No more on its way than a moment's worth, however slow the destination is: it would lie in memory.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 1 << 20),
    # A member that is frozen or cut off must not hold us for ever. etcd refuses to be asked more often than every 5 s.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
]


class Stream:
    """Reads a snapshot, as `etcdctl snapshot save` would write it, and checks its hash at the end."""

    def __init__(self, blobs: Iterator[tuple[int, bytes]], endpoint: str) -> None:
        self._blobs = blobs
        self._endpoint = endpoint
        self._hash = hashlib.sha256()
        self._rest = b""
        self._trailer = b""
        self._database = -1  # size without the trailer; the first answer tells
        self.size = 0  # what was read so far

    def read(self, limit: int = 1 << 20) -> bytes:
        """At most so many bytes; none at the end of a snapshot that is whole."""
        if not self._rest:
            self._rest = self._next()
        piece, self._rest = self._rest[:limit], self._rest[limit:]
        return piece

    @property
    def sha256(self) -> str:
        """Of all that was read, as sha256sum would say; it costs no second look at the data."""
        whole = self._hash.copy()
        whole.update(self._trailer)
        return whole.hexdigest()

    def _next(self) -> bytes:
        """The next answers, several at a time: etcd sends 32 KiB in each."""
        pieces, before, left = [], self.size, self._database - self.size
        for remaining, blob in self._blobs:
            if self._database < 0:
                self._database = left = remaining + len(blob)
            pieces.append(blob)
            self.size += len(blob)
            if self.size - before >= _BATCH:
                break
        data = b"".join(pieces)
        if not data and (self.size != self._database + _DIGEST or self._trailer != self._hash.digest()):
            raise EtcdError(UNAVAILABLE, "the snapshot ended early or was damaged on its way", self._endpoint)
        self._hash.update(memoryview(data)[:left])
        self._trailer += data[left:]
        return data


class Channel:
    """A gRPC connection to one member."""

    def __init__(self, endpoint: Endpoint, tls: Tls, token: str | None) -> None:
        os.environ.setdefault("GRPC_DNS_RESOLVER", "native")  # the system's, as for everything else
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        import grpc  # noqa: PLC0415  slow to import, and only this needs it

        self._grpc = grpc
        self._endpoint = endpoint
        self._metadata = [("token", token)] if token else []
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        where = f"{host}:{endpoint.port}"
        self._channel: Any = (
            grpc.secure_channel(where, _credentials(grpc, tls), _OPTIONS)
            if endpoint.secure
            else grpc.insecure_channel(where, _OPTIONS)
        )

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def snapshot(self) -> Stream:
        return Stream(self._blobs(), str(self._endpoint))

    def _blobs(self) -> Iterator[tuple[int, bytes]]:
        try:
            for answer in self._channel.unary_stream(_METHOD)(b"", metadata=self._metadata):
                fields = dict(_fields(answer))
                yield int(fields.get(_REMAINING, 0)), bytes(fields.get(_BLOB, b""))
        except self._grpc.RpcError as error:
            raise EtcdError(error.code().value[0], error.details() or "", str(self._endpoint)) from error


def _credentials(grpc: Any, tls: Tls) -> Any:
    _ = tls.context  # says what is wrong with the files
    roots = tls.ca or ssl.get_default_verify_paths().cafile

    def content(path: str | None) -> bytes | None:
        return Path(path).read_bytes() if path else None

    return grpc.ssl_channel_credentials(content(roots), content(tls.key or tls.cert), content(tls.cert))


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message: numbers as int, everything with a length as bytes."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        kind = key & 7
        value, position = _varint(message, position)
        if kind == 0:
            yield key >> 3, value
        elif kind == 2:
            yield key >> 3, message[position : position + value]
            position += value
        else:
            raise EtcdError(UNAVAILABLE, "the member's answer is no snapshot")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
