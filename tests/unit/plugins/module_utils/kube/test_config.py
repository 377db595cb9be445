"""How the API server is found: kubeconfigs as kubectl reads them, and the service account of a pod."""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import config
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube, KubeError, connect
from kubernetes.config import incluster_config
from urllib3.exceptions import InsecureRequestWarning

from sandbox import pki
from tests.unit.plugins.etcds import HOST, NAME

from . import servers
from .servers import Server

EXEC = "client.authentication.k8s.io/v1"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pki")
    ca = pki.make_ca("kubernetes")
    ca.write(folder / "ca")
    pki.make_leaf(ca, "server", names=(HOST, NAME)).write(folder / "server")
    pki.make_leaf(ca, "alice").write(folder / "alice")
    return folder


@pytest.fixture
def server(certificates: Path) -> Iterator[Server]:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates / "ca.crt"))
    tls.load_cert_chain(certificates / "server.crt", certificates / "server.key")
    tls.verify_mode = ssl.CERT_OPTIONAL
    with servers.running(tls) as server:
        yield server


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [*os.environ]:
        if name.lower().endswith("_proxy") or name in ("KUBECONFIG", config.KUBECONFIG, "KUBERNETES_SERVICE_HOST"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, server: Server, certificates: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a kubeconfig of one context and set KUBECONFIG to it."""

    def write(user: dict[str, Any], *, file: str = "config", context: str = "here", **cluster: Any) -> Path:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        found = {"server": server.url, "certificate-authority": str(certificates / "ca.crt"), **cluster}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "clusters": [{"name": f"{context}-cluster", "cluster": found}],
            "users": [{"name": f"{context}-user", "user": user}],
            "contexts": [{"name": context, "context": {"cluster": f"{context}-cluster", "user": f"{context}-user"}}],
        }
        path.write_text(json.dumps(content))
        monkeypatch.setenv("KUBECONFIG", str(path))
        return path

    return write


def _asked(kube: Kube) -> dict[str, Any]:
    return kube.get("Pod", "ns", "any") or {}


def _plugin(folder: Path, status: str, *, code: int = 0, seconds: float = 0) -> dict[str, Any]:
    """An exec credential plugin that counts its runs in the file `runs`."""
    program = folder / "plugin"
    answer = f'{{"apiVersion": "{EXEC}", "kind": "ExecCredential", "status": {status}}}'
    lines = [
        "#!/bin/sh",
        f"echo run >> {folder}/runs",
        'case "$KUBERNETES_EXEC_INFO" in *ExecCredential*) ;; *) echo "no info" >&2; exit 9;; esac',
        f"sleep {seconds}",
        f"[ {code} = 0 ] || {{ echo 'login expired' >&2; exit {code}; }}",
        f"cat <<END\n{answer}\nEND",
    ]
    program.write_text("\n".join(lines))
    program.chmod(0o755)
    return {"exec": {"apiVersion": EXEC, "command": "./plugin", "env": [{"name": "TOKEN", "value": "from-plugin"}]}}


def test_the_token_of_an_exec_plugin(server: Server, write: Write, tmp_path: Path) -> None:
    write(_plugin(tmp_path, '{"token": "$TOKEN"}'))
    kube = connect()
    _asked(kube)
    _asked(kube)
    assert server.authorizations == ["Bearer from-plugin"] * 2
    assert (tmp_path / "runs").read_text() == "run\n"


def test_an_exec_plugin_is_run_again_when_its_token_expires_soon(server: Server, write: Write, tmp_path: Path) -> None:
    write(_plugin(tmp_path, '{"token": "$(wc -l < runs)", "expirationTimestamp": "2020-01-01T00:00:00Z"}'))
    kube = connect()
    _asked(kube)
    _asked(kube)
    assert [each.split() for each in server.authorizations] == [["Bearer", "2"], ["Bearer", "3"]]


def test_the_client_certificate_of_an_exec_plugin(write: Write, certificates: Path, tmp_path: Path) -> None:
    pem = [json.dumps((certificates / f"alice.{part}").read_text()) for part in ("crt", "key")]
    quoted = f'{{"clientCertificateData": {pem[0]}, "clientKeyData": {pem[1]}}}'.replace("\\n", "\\\\n")
    write(_plugin(tmp_path, quoted))
    assert _asked(connect())["user"] == "alice"


def test_an_exec_plugin_that_fails_is_an_error(server: Server, write: Write, tmp_path: Path) -> None:
    path = write(_plugin(tmp_path, "{}", code=3))
    with pytest.raises(KubeError, match=rf"No credentials .*returned 3\. login expired\. .* user in {path}"):
        connect()
    assert server.answers == 0  # nothing was asked anonymously


def test_an_exec_plugin_that_is_not_there_is_an_error(write: Write) -> None:
    write({"exec": {"apiVersion": EXEC, "command": "./absent"}})
    with pytest.raises(KubeError, match=r"No credentials .*absent"):
        connect()


def test_an_exec_plugin_that_hangs_is_an_error(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "_LOAD_SECONDS", 0.3)
    write(_plugin(tmp_path, "{}", seconds=2))
    with pytest.raises(KubeError, match="Check the current user's exec plugin"):
        connect()


def test_a_token_file_is_read_again_when_its_token_is_refused(server: Server, write: Write, tmp_path: Path) -> None:
    write({"tokenFile": "token"})  # beside the kubeconfig
    (tmp_path / "token").write_text("first\n")
    kube = connect()
    _asked(kube)
    server.accepts = lambda authorization: authorization == "Bearer second"
    (tmp_path / "token").write_text("second\n")
    _asked(kube)
    assert server.authorizations == ["Bearer first", "Bearer first", "Bearer second"]


def test_client_certificates_in_the_kubeconfig(write: Write, certificates: Path) -> None:
    crt, key = (base64.b64encode((certificates / f"alice.{part}").read_bytes()).decode() for part in ("crt", "key"))
    write({"client-certificate-data": crt, "client-key-data": key})
    assert _asked(connect())["user"] == "alice"


def test_a_server_of_another_ca_is_talked_to_only_when_the_kubeconfig_says_so(
    server: Server, write: Write, certificates: Path
) -> None:
    pki.make_ca("another").write(certificates / "another")
    other = {"certificate-authority": str(certificates / "another.crt")}
    write({"token": "t"}, **other)
    with pytest.raises(KubeError, match="CERTIFICATE_VERIFY_FAILED"):
        _asked(connect())
    assert server.authorizations == []
    write({"token": "t"}, **other, **{"insecure-skip-tls-verify": True})
    with pytest.warns(InsecureRequestWarning):
        _asked(connect())
    assert server.authorizations == ["Bearer t"]


def test_unusable_certificates_are_reported(server: Server, write: Write, certificates: Path) -> None:
    write({"client-certificate": str(certificates / "alice.crt"), "client-key": str(certificates / "server.key")})
    with pytest.raises(KubeError, match=rf"The certificates for {server.url} cannot be used: .*KEY_VALUES_MISMATCH"):
        connect()


def test_the_name_in_the_certificate_may_be_another(server: Server, write: Write, certificates: Path) -> None:
    write({"token": "t"}, **{"tls-server-name": NAME})
    assert _asked(connect())
    write({"token": "t"}, **{"tls-server-name": "another.test"})
    with pytest.raises(KubeError, match=r"does not answer: .*(not valid|doesn't match|CERTIFICATE_VERIFY_FAILED)"):
        _asked(connect())


@contextmanager
def _proxy() -> Iterator[tuple[str, list[str]]]:
    """A proxy that tunnels by CONNECT, and notes whereto."""
    wanted: list[str] = []

    def tunnel(client: socket.socket) -> None:
        with client:
            request = b""
            while b"\r\n\r\n" not in request:
                request += client.recv(4096)
            wanted.append(request.split()[1].decode())
            host, _, port = wanted[-1].partition(":")
            with socket.create_connection((host, int(port))) as target:
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                ends = {client: target, target: client}
                while True:
                    for ready in select.select(list(ends), [], [], 10)[0]:
                        data = ready.recv(65536)
                        if not data:
                            return
                        ends[ready].sendall(data)

    with socket.create_server((HOST, 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=tunnel, args=(client,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://{HOST}:{listening.getsockname()[1]}", wanted
        listening.shutdown(socket.SHUT_RDWR)


def test_the_proxy_of_a_kubeconfig(server: Server, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", HOST)  # is about proxies from the environment only
    with _proxy() as (url, wanted):
        write({"token": "t"}, **{"proxy-url": url})
        assert _asked(connect())["message"].endswith("/pods/any")
    assert wanted == [server.url.removeprefix("https://")]


def test_the_proxy_of_the_environment(server: Server, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    with _proxy() as (url, wanted):
        monkeypatch.setenv("HTTPS_PROXY", url)
        write({"token": "t"})
        _asked(connect())
        monkeypatch.setenv("NO_PROXY", HOST)
        _asked(connect())
    assert wanted == [server.url.removeprefix("https://")]


def test_a_proxy_that_is_off_is_named_without_its_password(write: Write) -> None:
    write({"token": "t"}, **{"proxy-url": f"http://someone:secret@{HOST}:1"})
    with pytest.raises(KubeError, match=r"\(through the proxy 127\.0\.0\.1:1\) does not answer") as error:
        _asked(connect())
    assert "secret" not in str(error.value)


def test_several_files_are_merged_and_the_first_context_counts(
    server: Server, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for kubectl and client-go, on which ansible-operator relies: both must talk to the same cluster."""
    second = write({"token": "second"}, file="b/second", context="other")
    first = write({"tokenFile": "token"}, file="a/first")
    (tmp_path / "a/token").write_text("first")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/absent:{first}:{second}")
    _asked(connect())
    monkeypatch.setenv("KUBECONFIG", f"{second}:{first}")
    _asked(connect())
    assert server.authorizations == ["Bearer first", "Bearer second"]


def test_the_parts_of_a_context_may_be_in_several_files(
    server: Server, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = write({"token": "t"})
    content = json.loads(whole.read_text())
    users = whole.with_name("users")
    users.write_text(json.dumps({"users": content.pop("users"), "current-context": ""}))
    whole.write_text(json.dumps(content))
    monkeypatch.setenv("KUBECONFIG", f"{users}:{whole}")
    _asked(connect())
    assert server.authorizations == ["Bearer t"]


def test_the_default_file(server: Server, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"token": "default"}, file=".kube/config")  # HOME is tmp_path
    monkeypatch.delenv("KUBECONFIG")
    _asked(connect())
    assert server.authorizations == ["Bearer default"]


def test_etcdops_kubeconfig_comes_before_kubeconfig(
    server: Server, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(config.KUBECONFIG, str(write({"token": "mine"}, file="mine")))
    write({"token": "proxy"}, server="http://127.0.0.1:1")
    _asked(connect())
    assert server.authorizations == ["Bearer mine"]


def test_the_service_account_of_a_pod(
    server: Server, certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("of-the-pod")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(certificates / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", HOST)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.server_port))
    monkeypatch.setenv("KUBECONFIG", "/nowhere")  # of ansible-operator's proxy: not for us
    kube = connect()
    _asked(kube)
    server.accepts = lambda authorization: authorization.endswith("rotated")
    token.write_text("rotated")
    _asked(kube)
    assert server.authorizations == ["bearer of-the-pod", "bearer of-the-pod", "bearer rotated"]
    token.write_text("")
    with pytest.raises(KubeError, match="service account cannot be used: Token file exists but empty"):
        connect()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No configuration found"),
        ("", "is empty"),
        ("{not yaml", "expected"),
        ("- a list", "is not a kubeconfig"),
        ("{current-context: nowhere, contexts: [], clusters: [], users: []}", "nowhere"),
        ("{contexts: [], clusters: [], users: []}", "current-context"),
    ],
)
def test_an_invalid_kubeconfig_is_reported_with_its_path(
    content: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(KubeError, match=message) as error:
        connect()
    assert str(path) in str(error.value)
    assert error.value.status == 0
