"""What the ports of a member do on the wire: python wire.py NAMESPACE CLUSTER. Run by verify.yml.

Every client but the right one must be refused, on the client port and on the peer port. It all happens in the network
namespace of another member's pod: from anywhere else etcd refuses even the right peer certificate, since the address
that it comes from is not a member's.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import pki
from cryptography import x509
from cryptography.x509.oid import NameOID

from sandbox import cluster as sandbox

CLIENT_PORT, PEER_PORT = 2379, 2380


def main() -> None:
    namespace, name = sys.argv[1:3]
    if "--inside" not in sys.argv:
        target = f"--target={_pid(f'{name}-1')}"
        os.execvp("nsenter", ["nsenter", target, "--net", "--", sys.executable, *sys.argv, "--inside"])  # noqa: S606
    address = json.loads(_kubectl(namespace, "get", "pod", f"{name}-0"))["status"]["podIP"]
    with tempfile.TemporaryDirectory() as folder:
        client = _credentials(Path(folder), "client", _secret(namespace, f"{name}-client-tls"))
        peer = _credentials(Path(folder), "peer", _secret(namespace, f"{name}-peer-tls"))
        foreign = _foreign(Path(folder))
        assert _talks(address, CLIENT_PORT, client, client), "the right client must get in"
        assert _talks(address, PEER_PORT, peer, peer), "the right peer must get in"
        for port, ours, who in ((CLIENT_PORT, client, "client"), (PEER_PORT, peer, "peer")):
            assert not _talks_plain(address, port), f"plain text got in at the {who} port"
            assert not _talks(address, port, ours, None), f"a client without a certificate got in at the {who} port"
            assert not _talks(address, port, ours, foreign), f"a foreign certificate got in at the {who} port"
        assert not _talks(address, PEER_PORT, peer, client), "a client's certificate got in at the peer port"
        assert not _talks(address, CLIENT_PORT, client, peer), "a peer's certificate got in at the client port"
        print(_serial(address, client))


def _pid(pod: str) -> int:
    """The etcd process of a pod, as the machine sees it."""
    wanted = f"POD_NAME={pod}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (path / "environ").read_bytes().split(b"\0") and (path / "comm").read_text() == "etcd\n":
                return int(path.name)
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
    sys.exit(f"no etcd runs for {pod}")


def _kubectl(namespace: str, *arguments: str) -> str:
    return sandbox.kubectl(f"--namespace={namespace}", *arguments, "--output=json")


def _secret(namespace: str, name: str) -> dict[str, bytes]:
    data = json.loads(_kubectl(namespace, "get", "secret", name))["data"]
    return {field: base64.b64decode(value) for field, value in data.items()}


def _credentials(folder: Path, name: str, secret: dict[str, bytes]) -> Path:
    """A folder with ca.crt, tls.crt and tls.key."""
    target = folder / name
    target.mkdir()
    for field, value in secret.items():
        (target / field).write_bytes(value)
    return target


def _foreign(folder: Path) -> Path:
    now = datetime.now(UTC)
    authority = pki.make_authority("somebody else", now)
    leaf = pki.make_leaf(authority, _name("root"), (), now)
    pem = {"ca.crt": authority.certificate_pem, "tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem}
    return _credentials(folder, "foreign", pem)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _context(trust: Path, own: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # we dial the pod's address
    context.load_verify_locations(trust / "ca.crt")
    if own:
        context.load_cert_chain(own / "tls.crt", own / "tls.key")
    return context


def _talks(address: str, port: int, trust: Path, own: Path | None) -> bool:
    """Does the port serve us? With TLS 1.3 a refusal comes only with the first answer."""
    try:
        with (
            socket.create_connection((address, port), timeout=5) as plain,
            _context(trust, own).wrap_socket(plain) as secure,
        ):
            return _answers(secure)
    except (ssl.SSLError, ConnectionError):
        return False


def _talks_plain(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=5) as plain:
            return _answers(plain)
    except ConnectionError:
        return False


def _answers(connection: socket.socket) -> bool:
    connection.sendall(b"GET /version HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n")
    return connection.recv(100).startswith(b"HTTP/1.1 200")


def _serial(address: str, client: Path) -> str:
    """Which certificate the member shows."""
    with (
        socket.create_connection((address, CLIENT_PORT), timeout=5) as plain,
        _context(client, client).wrap_socket(plain) as secure,
    ):
        shown = secure.getpeercert()
    assert shown
    return str(shown["serialNumber"])


if __name__ == "__main__":
    main()
