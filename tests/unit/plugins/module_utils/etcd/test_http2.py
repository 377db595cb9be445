from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import hpack
import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import http2
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.endpoint import Endpoint, Tls
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError, Unreachable
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.http2 import Call, Violation, frame, messages, unpadded

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20


def _message(content: bytes) -> bytes:
    return struct.pack(">BI", 0, len(content)) + content


def _headers(*fields: tuple[str, str], final: bool = False) -> bytes:
    block = hpack.Encoder().encode(fields)
    return frame(HEADERS, END_HEADERS | (END_STREAM if final else 0), 1, block)


BEGUN = frame(SETTINGS, 0, 0) + _headers((":status", "200"), ("content-type", "application/grpc"))
WELL = _headers(("grpc-status", "0"), final=True)


@contextmanager
def _peer(said: bytes, heard: bytearray | None = None) -> Iterator[Endpoint]:
    """Says what etcd says only on bad days, and listens until the other end hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connected, _ = listening.accept()
            with connected:
                connected.sendall(said)
                while piece := connected.recv(1 << 16):
                    if heard is not None:
                        heard.extend(piece)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}")
        finally:
            thread.join()


def _answers(said: bytes, heard: bytearray | None = None) -> list[bytes]:
    with _peer(said, heard) as endpoint, Call(endpoint, Tls()) as call:
        return [bytes(each) for each in call.answers("/a.B/C", b"", {"token": "t"})]


def _refusal(said: bytes) -> EtcdError:
    with pytest.raises(EtcdError) as caught:
        _answers(said)
    return caught.value


@pytest.mark.parametrize("cut", [1, 2, 4, 5, 6, 7, 100])
def test_messages_are_joined_from_frames_of_any_size(cut: int) -> None:
    sent = [b"first", b"", b"x" * 300, b"last"]
    stream = b"".join(_message(each) for each in sent)
    pieces = (memoryview(stream[start : start + cut]) for start in range(0, len(stream), cut))
    assert [bytes(each) for each in messages(pieces)] == sent


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (_message(b"whole")[:-1], "within a message"),
        (b"\0\0", "within a message"),
        (b"\1\0\0\0\1x", "compressed"),
        (b"\0\xff\xff\xff\xff", "bytes"),
    ],
)
def test_invalid_message_is_refused(stream: bytes, said: str) -> None:
    with pytest.raises(Violation, match=said):
        list(messages([memoryview(stream)]))


def test_padding_is_removed() -> None:
    assert bytes(unpadded(memoryview(b"\2abc\0\0"))) == b"abc"
    for wrong in (b"", b"\1", b"\5abc"):
        with pytest.raises(Violation):
            unpadded(memoryview(wrong))


def test_answer_is_parsed_in_every_allowed_form() -> None:
    block = hpack.Encoder().encode([("grpc-status", "0")])
    said = [
        BEGUN,
        frame(PING, 0, 0, b"12345678"),
        frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)),
        frame(0x42, 0, 0, b"of a kind that is not known"),
        frame(GOAWAY, 0, 0, struct.pack(">II", 1, 0)),  # it goes down when this call has ended
        frame(DATA, PADDED, 1, b"\3" + _message(b"padded") + b"\0\0\0"),
        frame(DATA, 0, 1),
        frame(DATA, 0, 1, _message(b"plain")),
        frame(HEADERS, END_STREAM | WITH_PRIORITY | PADDED, 1, b"\1" + bytes(5) + block[:1] + b"\0"),
        frame(CONTINUATION, END_HEADERS, 1, block[1:]),
    ]
    heard = bytearray()
    assert _answers(b"".join(said), heard) == [b"padded", b"plain"]
    assert frame(SETTINGS, ACK, 0) in heard
    assert frame(PING, ACK, 0, b"12345678") in heard


def test_flow_control_window_grows_by_what_was_read() -> None:
    content = bytes(16000)
    count = (http2._WINDOW + (1 << 20)) // len(content)
    heard = bytearray()
    said = BEGUN + b"".join(frame(DATA, 0, 1, _message(content)) for _ in range(count)) + WELL
    assert len(_answers(said, heard)) == count
    size = len(_message(content))
    taken = -(-http2._WINDOW // 2 // size) * size  # the first frame that makes it half a window
    for stream in (0, 1):
        assert heard.count(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", taken))) == 2


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        (_headers(("grpc-status", "7"), ("grpc-message", "not%20you"), final=True), 7, "not you"),
        (BEGUN + _headers(("grpc-status", "14"), ("grpc-message", "x"), final=True), 14, "x"),
        (_headers((":status", "404")), 2, "HTTP 404"),
        (BEGUN + frame(DATA, END_STREAM, 1, _message(b"x")), 14, "without a status"),
        (BEGUN + _headers(("other", "0"), final=True), 14, "without a status"),
        (BEGUN + frame(RST_STREAM, 0, 1, struct.pack(">I", 8)), 14, "reset the stream"),
        (BEGUN + frame(GOAWAY, 0, 0, struct.pack(">II", 1, 11) + b"too_many_pings"), 14, "too_many_pings"),
        (frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0)), 14, "closed the connection"),
        (BEGUN + frame(GOAWAY, 0, 0, b"x"), 14, "does not speak gRPC"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", 14, "does not speak gRPC"),
        (frame(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff"), 14, "does not speak gRPC"),
        (BEGUN + frame(HEADERS, 0, 1, b"x") + 5 * frame(CONTINUATION, 0, 1, bytes(16384)), 14, "headers are too large"),
    ],
)
def test_failed_call_is_reported_with_code_and_cause(said: bytes, code: int, words: str) -> None:
    refusal = _refusal(said)
    assert words in str(refusal)
    assert refusal.code == code


def test_silent_member_is_pinged_and_then_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http2, "_SILENCE", 0.2)
    heard = bytearray()
    with pytest.raises(Unreachable, match="nothing came from it"):
        _answers(BEGUN, heard)
    assert heard.count(frame(PING, 0, 0, b"etcdops?")) == 1


def test_server_that_is_down_or_disconnects_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        endpoint = Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}")
        with Call(endpoint, Tls()) as call:
            listening.accept()[0].close()
            with pytest.raises(Unreachable, match="without an answer"):
                list(call.answers("/a.B/C", b"", {}))
    with pytest.raises(Unreachable, match="connection refused"):
        Call(endpoint, Tls())
