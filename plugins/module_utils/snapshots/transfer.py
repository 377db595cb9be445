"""Copy a verified snapshot from one pod to others, over TLS with certificates on both sides.

A restore needs the snapshot at every member. The PVC that holds it may be bound to one node and the members' volumes
to others, so no pod can mount both; and this way the store's credentials and the key reach one pod only.
"""

from __future__ import annotations

import http.client
import http.server
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from .codec import Reader
from .errors import StoreError

NAME = "snapshot"  # in the certificate; the address is that of a pod
PORT = 8443
FOLDER = Path("/etc/etcdops/transfer")  # ca.crt, tls.crt, tls.key
_TIMEOUT = 60.0
_STARTING = 30.0


def serve(path: Path, folder: Path = FOLDER, port: int = PORT) -> http.server.ThreadingHTTPServer:
    """A server that sends one file to every client with a certificate of the transfer's CA."""
    size = path.stat().st_size

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _TIMEOUT

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            with path.open("rb") as file:
                while piece := file.read(1 << 20):
                    self.wfile.write(piece)

    server = http.server.ThreadingHTTPServer(("", port), Handler)
    context = _context(ssl.PROTOCOL_TLS_SERVER, folder)
    context.verify_mode = ssl.CERT_REQUIRED
    # The handshake runs in the connection's own thread, so a silent client does not block others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return server


def url(address: str) -> str:
    return f"https://{f'[{address}]' if ':' in address else address}:{PORT}/"


@contextmanager
def reading(source: str, folder: Path = FOLDER) -> Iterator[Reader]:
    parts = urlsplit(source)
    connection = _Connection(parts.hostname or "", parts.port or PORT, _context(ssl.PROTOCOL_TLS_CLIENT, folder))
    try:
        connection.request("GET", parts.path or "/")
        answer = connection.getresponse()
        if answer.status != 200:
            raise StoreError(f"{source} answered HTTP {answer.status}")
        yield _Body(answer)
    except (OSError, http.client.HTTPException) as error:
        raise StoreError(f"{source} does not send the snapshot: {error}") from error
    finally:
        connection.close()


class _Body:
    """Notices when the other end closes early, which http.client does not when it reads in pieces."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer = answer

    def read(self, limit: int = 1 << 20) -> bytes:
        data = self._answer.read(limit)
        if not data and self._answer.length:
            raise StoreError("the snapshot from the other pod is truncated")
        return data


class _Connection(http.client.HTTPSConnection):
    """Dials an address, and verifies the certificate against a fixed name."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=_TIMEOUT, context=context)
        self._tls = context

    def connect(self) -> None:
        self.sock = self._dial()
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=NAME)

    def _dial(self) -> socket.socket:
        ends = time.monotonic() + _STARTING
        while True:
            try:
                return socket.create_connection((self.host, self.port), timeout=_TIMEOUT)
            except ConnectionRefusedError:  # the other pod runs, but does not listen yet
                if time.monotonic() > ends:
                    raise
                time.sleep(0.5)


def _context(protocol: int, folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(str(folder / "tls.crt"), str(folder / "tls.key"))
    return context


if __name__ == "__main__":
    serve(Path(sys.argv[1])).serve_forever()
