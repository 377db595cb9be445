"""An HTTP proxy in front of an S3 server that loses, refuses, cuts or changes requests: what networks and stores do."""

from __future__ import annotations

import http.client
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from .etcds import HOST


@dataclass(frozen=True)
class Request:
    method: str
    path: str  # with its query

    @property
    def completes(self) -> bool:
        """Whether this request completes a multipart upload."""
        return self.method == "POST" and "uploadId=" in self.path


PASS, LOSE_REQUEST, LOSE_ANSWER, CHANGE_BODY, CUT_ANSWER, FORBID = (
    "pass",
    "lose request",
    "lose answer",
    "change",
    "cut",
    "forbid",
)


@dataclass
class Proxy:
    port: int
    decide: Callable[[Request], str] = lambda _: PASS
    seen: list[Request] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"


@contextmanager
def proxying(target: int) -> Iterator[Proxy]:
    """A proxy to a port of this host. It does with each request what its `decide` says."""
    server = _Server((HOST, 0), _Handler)
    server.target = target
    server.proxy = Proxy(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    target: int
    proxy: Proxy

    def handle_error(self, *_: object) -> None:
        """A client that hung up is part of a test."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        request = Request(self.command, self.path)
        self.server.proxy.seen.append(request)
        verdict = self.server.proxy.decide(request)
        body = bytearray(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if verdict == LOSE_REQUEST:
            self._hang_up()
        elif verdict == FORBID:
            self._answer(403, [("Content-Length", "0")], b"")
        else:
            if verdict == CHANGE_BODY:
                body[len(body) // 2] ^= 1
            self._pass_on(bytes(body), verdict)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _handle  # noqa: N815

    def _pass_on(self, body: bytes, verdict: str) -> None:
        # Closed also when the store hangs up in the middle, which is part of a test.
        with closing(http.client.HTTPConnection(HOST, self.server.target, timeout=60)) as connection:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():  # Host too: it is signed
                connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            content = answer.read()
        if verdict != LOSE_ANSWER:
            cut = verdict == CUT_ANSWER
            self._answer(answer.status, answer.getheaders(), content[: len(content) // 2] if cut else content)
        if verdict in (LOSE_ANSWER, CUT_ANSWER):
            self._hang_up()

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Tests need no log."""
