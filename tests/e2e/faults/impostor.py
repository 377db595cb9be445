"""Something else answers for a member: python -m tests.e2e.faults.impostor (start|end) NAMESPACE POD

It has the member's certificate, as whoever chooses the image of a member has. Its answers never end: one is as fast as
the network, the next one is a byte a second. The other members still reach the real etcd.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import socketserver
import ssl
import sys
import time
from contextlib import suppress
from pathlib import Path

from sandbox import cluster as sandbox
from sandbox import command, layout
from sandbox.run import run, wait_for

from ..fixtures.containers import first_process
from ..traffic import background

_CLIENT_PORT, _PORT = 2379, 2999
_HEAD = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"header":"'
_REDIRECT = f"PREROUTING -p tcp --dport {_CLIENT_PORT} -j REDIRECT --to-ports {_PORT}".split()


class _Impostor(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__(("0.0.0.0", _PORT), _Answer)  # noqa: S104  in the pod's network namespace
        self.tls = tls
        self.kinds = itertools.cycle((_flood, _drip))


class _Answer(socketserver.BaseRequestHandler):
    server: _Impostor

    def handle(self) -> None:
        with suppress(OSError), self.server.tls.wrap_socket(self.request, server_side=True) as connection:
            connection.recv(1 << 16)
            connection.sendall(_HEAD)
            next(self.server.kinds)(connection)


def _flood(connection: ssl.SSLSocket) -> None:
    while True:
        connection.sendall(b"x" * (1 << 16))


def _drip(connection: ssl.SSLSocket) -> None:
    while True:
        connection.sendall(b"x")
        time.sleep(1)


def start(namespace: str, pod: str) -> None:
    folder = _folder(namespace, pod)
    background.fresh(folder)
    found = json.loads(sandbox.kubectl("get", "pod", pod, f"--namespace={namespace}", "--output=json"))
    cluster = found["metadata"]["labels"]["etcdops.dev/cluster"]
    secret = sandbox.kubectl("get", "secret", f"{cluster}-server-tls", f"--namespace={namespace}", "--output=json")
    for name in ("tls.crt", "tls.key"):
        (folder / name).write_bytes(base64.b64decode(json.loads(secret)["data"][name]))
    container = found["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    (folder / "member").write_text(str(first_process(container)))
    background.start(__spec__.name, folder)
    wait_for("the impostor to listen", lambda: "listens" in (folder / "log").read_text(), timeout=30, every=0.05)
    _inside(folder, "--append")


def end(namespace: str, pod: str) -> None:
    folder = _folder(namespace, pod)
    _inside(folder, "--delete")
    background.end(folder)


def serve(folder: Path) -> None:
    """In the network namespace of the member's pod."""
    if "--inside" not in sys.argv:
        target = f"--target={(folder / 'member').read_text()}"
        here = [sys.executable, "-m", __spec__.name, *sys.argv[1:], "--inside"]
        os.execvp("nsenter", ["nsenter", target, "--net", "--", *here])  # noqa: S606
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    with _Impostor(tls) as server:
        print("listens", flush=True)
        server.serve_forever()


def _inside(folder: Path, verb: str) -> None:
    target = f"--target={(folder / 'member').read_text()}"
    run(["nsenter", target, "--net", "--", "iptables", "--table=nat", verb, *_REDIRECT])


def _folder(namespace: str, pod: str) -> Path:
    return layout.REPOSITORY / ".build" / "impostor" / f"{namespace}-{pod}"


def main() -> None:
    match sys.argv[1:]:
        case ["start", namespace, pod]:
            start(namespace, pod)
        case ["end", namespace, pod]:
            end(namespace, pod)
        case ["run", folder, *_]:
            serve(Path(folder))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    command.run("impostor", main)
