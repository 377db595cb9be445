"""A real kube-apiserver with a real etcd on 127.0.0.1, without nodes and controllers; ready in about 2 s."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube, KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from kubernetes.client.configuration import Configuration

from sandbox import layout, parts, pki

from .etcds import HOST, Cluster, eventually, free_ports

TOKEN = "token-of-alice"
OPERATOR = "system:serviceaccount:etcdops-system:etcdops"  # as deploy/default installs it


@dataclass
class ApiServer:
    folder: Path
    url: str
    etcd: Cluster
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, folder: Path, authorization: str = "AlwaysAllow") -> ApiServer:
        """With "RBAC", alice is a cluster-admin."""
        etcd = Cluster(layout.ETCD_VERSIONS[1], folder).bootstrap(1)
        (port,) = free_ports(1)
        ca = pki.make_ca("kubernetes")
        ca.write(folder / "ca")
        pki.make_leaf(ca, "server", names=(HOST,)).write(folder / "server")
        users = [f"{TOKEN},alice,alice,system:masters", f"{TOKEN}-bob,bob,bob", f"{TOKEN}-operator,{OPERATOR},operator"]
        (folder / "tokens.csv").write_text("\n".join(users))
        command = [
            str(parts.binary("kubernetes", "kube-apiserver")),
            f"--etcd-servers={etcd.endpoints[0]}",
            f"--bind-address={HOST}",
            f"--secure-port={port}",
            f"--tls-cert-file={folder}/server.crt",
            f"--tls-private-key-file={folder}/server.key",
            f"--token-auth-file={folder}/tokens.csv",
            f"--authorization-mode={authorization}",
            f"--service-account-key-file={folder}/server.key",
            f"--service-account-signing-key-file={folder}/server.key",
            "--service-account-issuer=https://kubernetes.test",
            "--disable-admission-plugins=ServiceAccount",  # no controller creates service accounts here
            "--service-cluster-ip-range=198.18.64.0/24",
        ]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        started = cls(folder, f"https://{HOST}:{port}", etcd, process)
        eventually(started._answers, timeout=90)
        return started

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.etcd.end()

    def settings(self, token: str = TOKEN) -> Configuration:
        return Configuration(
            host=self.url, ssl_ca_cert=f"{self.folder}/ca.crt", api_key={"BearerToken": f"Bearer {token}"}
        )

    def kubeconfig(self) -> Path:
        path = self.folder / "kubeconfig"
        cluster = {"server": self.url, "certificate-authority": f"{self.folder}/ca.crt"}
        content = {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "alice"}}],
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "alice", "user": {"token": TOKEN}}],
        }
        path.write_text(json.dumps(content))
        return path

    def namespace(self, name: str) -> None:
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        Kube(self.settings)._call("POST", "api/v1/namespaces", manifest)

    def define(self, path: Path) -> None:
        """Create a CustomResourceDefinition, unless it exists, and wait until its objects can be read."""
        kube = Kube(self.settings)
        definition: Manifest = yaml.safe_load(path.read_text())
        try:
            kube._call("POST", "apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        except KubeError as error:
            if error.status != 409:
                raise
        eventually(lambda: _succeeds(kube, definition["spec"]["names"]["kind"]))

    def _answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
        kube = Kube(self.settings)
        return _succeeds(kube, "Pod") and kube._send("GET", "readyz")[0] == 200


def _succeeds(kube: Kube, kind: str) -> bool:
    with suppress(KubeError):
        kube.list(kind, "default", "")
        return True
    return False
