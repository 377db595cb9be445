"""Real etcd processes on 127.0.0.1, for tests."""

from __future__ import annotations

import datetime
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.client import Client
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.endpoint import Endpoint, Tls
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sandbox import parts, pki

HOST = "127.0.0.1"
NAME = "etcd.test"  # in the certificates, and in no DNS

T = TypeVar("T")


def eventually(check: Callable[[], T], timeout: float = 60) -> T:
    """The first true answer; an EtcdError counts as not yet."""
    end = time.monotonic() + timeout
    last: object = None
    while time.monotonic() < end:
        try:
            if last := check():
                return last
        except EtcdError as error:
            last = error
        time.sleep(0.05)
    pytest.fail(f"not within {timeout:.0f} s; the last answer was {last!r}")


def healthy(client: Client) -> Callable[[], bool]:
    """For `eventually`."""

    def check() -> bool:
        client.health()
        return True

    return check


def free_ports(count: int) -> list[int]:
    """Below those that the kernel gives to whoever asks: the tests of another checkout may run on this machine too."""
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(12000, 32000)  # noqa: S311
        with socket.socket() as one:
            try:
                one.bind((HOST, port))
            except OSError:
                continue
        found += [] if port in found else [port]
    return found


def _without_common_name(ca: pki.Pair) -> pki.Pair:
    """A client certificate, for clusters with auth: etcd's gateway wants no common name then."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "tests")]))
        .issuer_name(ca.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(ca.key, hashes.SHA256())
    )
    return pki.Pair(certificate, key)


@dataclass(frozen=True)
class Certificates:
    """A CA, what it signed, and a client of another CA, as files in a folder."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        folder.mkdir()
        ca, foreign = pki.make_ca("etcd"), pki.make_ca("another")
        ca.write(folder / "ca")
        foreign.write(folder / "foreign-ca")
        pki.make_leaf(ca, "server", names=(HOST, NAME)).write(folder / "server")
        # No SAN: etcd would check it against the address that the client comes from.
        pki.make_leaf(ca, "client").write(folder / "client")
        _without_common_name(ca).write(folder / "nameless")
        pki.make_leaf(foreign, "client").write(folder / "foreign")
        return cls(folder)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def client(self) -> Tls:
        return Tls(self.path("ca.crt"), self.path("client.crt"), self.path("client.key"))


@dataclass
class Member:
    name: str
    client_url: str
    peer_url: str
    process: subprocess.Popen[bytes] | None = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process = None

    def freeze(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGCONT)


@dataclass
class Cluster:
    """Members of one version; the client port speaks TLS and wants client certificates when there are certificates."""

    version: str
    folder: Path
    certificates: Certificates | None = None
    members: list[Member] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)
    heartbeat: int = 30  # milliseconds; the election timeout is ten times that

    @property
    def endpoints(self) -> list[str]:
        return [member.client_url for member in self.members]

    def prepare(self, name: str) -> Member:
        """A member that is not started yet."""
        scheme = "https" if self.certificates else "http"
        client, peer = free_ports(2)
        member = Member(name, f"{scheme}://{HOST}:{client}", f"http://{HOST}:{peer}")
        self.members.append(member)
        return member

    def bootstrap(self, size: int) -> Cluster:
        for number in range(size):
            self.prepare(f"m{number}")
        for member in self.members:
            self.start(member)
        for member in self.members:
            eventually(healthy(self.client(member)))
        return self

    def start(self, member: Member, *, state: str = "new") -> None:
        """Start a member, or start it again; `existing` for one that was added."""
        program = parts.etcd_binary(self.version)
        if not program.exists():
            pytest.fail(
                f"etcd {self.version} is not built; run `python -m sandbox prepare` (or `make sandbox-up`) once"
            )
        secure = self.certificates
        command = [
            str(program),
            f"--name={member.name}",
            f"--data-dir={self.folder / member.name}",
            f"--listen-client-urls={member.client_url}",
            f"--advertise-client-urls={member.client_url}",
            f"--listen-peer-urls={member.peer_url}",
            f"--initial-advertise-peer-urls={member.peer_url}",
            f"--initial-cluster={','.join(f'{one.name}={one.peer_url}' for one in self.members)}",
            f"--initial-cluster-state={state}",
            f"--heartbeat-interval={self.heartbeat}",
            f"--election-timeout={10 * self.heartbeat}",
            "--unsafe-no-fsync",
            "--bcrypt-cost=4",
            "--log-level=warn",
        ]
        if secure:
            command += [
                f"--cert-file={secure.path('server.crt')}",
                f"--key-file={secure.path('server.key')}",
                f"--trusted-ca-file={secure.path('ca.crt')}",
                "--client-cert-auth",
            ]
        with (self.folder / f"{member.name}.log").open("ab") as log:
            member.process = subprocess.Popen(command, stdout=log, stderr=log)

    def client(self, member: Member | None = None, *, timeout: float = 5.0, user: str | None = None) -> Client:
        """A client of one member (the first), closed with the cluster. The password is the user's name."""
        url = (member or self.members[0]).client_url
        tls = self.certificates.client if self.certificates else None
        client = Client(Endpoint(url), tls, timeout, user, user)
        self.clients.append(client)
        return client

    def leader(self) -> Member:
        def found() -> Member | None:
            members = self.client().members().members
            leader = self.client().status().leader_id
            name = next((member.name for member in members if member.id == leader), None)
            return next((member for member in self.members if member.name == name), None)

        return eventually(found)  # type: ignore[return-value]

    def enable_auth(self) -> None:
        """Two users, `root` and `guest`, whose passwords are their names."""
        client = self.client()
        for user in ("root", "guest"):
            client.call("auth/user/add", {"name": user, "password": user})
        client.call("auth/user/grant", {"user": "root", "role": "root"})
        client.call("auth/enable", {})

    def end(self) -> None:
        for client in self.clients:
            client.close()
        for member in self.members:
            member.kill()
        shutil.rmtree(self.folder)  # each member has 128 MB of log files
