"""An HTTP or HTTPS server on 127.0.0.1 that notes what it is asked, for tests of how a client gets there."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.unit.plugins.etcds import HOST


class Server(ThreadingHTTPServer):
    """Answers every request with its path and who asked; closes the connection after each `hang_up_after` answers."""

    daemon_threads = True

    def __init__(self, tls: ssl.SSLContext | None, hang_up_after: int) -> None:
        super().__init__((HOST, 0), _Handler)
        self.url = f"{'https' if tls else 'http'}://{HOST}:{self.server_port}"
        self.hang_up_after, self.answers, self.connections = hang_up_after, 0, 0
        self.accepts: Callable[[str], bool] = lambda _authorization: True
        self.authorizations: list[str] = []
        self.meet: threading.Barrier | None = None  # requests wait until so many are there
        self.lock = threading.Lock()
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    def get_request(self) -> tuple[socket.socket, Any]:
        self.connections += 1
        return super().get_request()

    def handle_error(self, *_: object) -> None:
        """A client that does not trust us hangs up."""


@contextmanager
def running(tls: ssl.SSLContext | None = None, hang_up_after: int = 0) -> Iterator[Server]:
    with Server(tls, hang_up_after) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise an answer in two parts takes 40 ms
    server: Server

    def do_GET(self) -> None:
        if self.server.meet:
            self.server.meet.wait(10)
        authorization = self.headers.get("Authorization", "")
        with self.server.lock:
            self.server.answers += 1
            self.server.authorizations.append(authorization)
            last = bool(self.server.hang_up_after) and self.server.answers % self.server.hang_up_after == 0
        status = next((code for code in (403, 404) if f"/{code}" in self.path), 200)
        if not self.server.accepts(authorization):
            status = 401
        content = json.dumps({"message": self.path, "items": [{"path": self.path}], "user": self._user()}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if last:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def _user(self) -> str:
        """The common name of the client's certificate."""
        certificate = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
        subject: Any = (certificate or {}).get("subject", ())
        return next((value for part in subject for name, value in part if name == "commonName"), "")

    def log_message(self, *_: object) -> None:
        pass
