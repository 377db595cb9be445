"""A thin client of the Kubernetes API: only the kinds and calls that we need, the standard library only.

It goes to the API server itself, not through ansible-operator's proxy: what it reads is never older than what was
written, and no informer needs permission to list and watch everything. The official client would cost half a second of
import in every run.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode, urlsplit

from .manifest import Manifest, Manifests

FIELD_MANAGER = "etcdops"
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_KINDS = {
    "ConfigMap": ("api/v1", "configmaps"),
    "Event": ("api/v1", "events"),
    "Node": ("api/v1", "nodes"),
    "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims"),
    "Pod": ("api/v1", "pods"),
    "Secret": ("api/v1", "secrets"),
    "Service": ("api/v1", "services"),
    "StatefulSet": ("apis/apps/v1", "statefulsets"),
    "Job": ("apis/batch/v1", "jobs"),
    "PodDisruptionBudget": ("apis/policy/v1", "poddisruptionbudgets"),
    "StorageClass": ("apis/storage.k8s.io/v1", "storageclasses"),
    "EtcdCluster": ("apis/etcdops.dev/v1beta1", "etcdclusters"),
    "EtcdBackup": ("apis/etcdops.dev/v1beta1", "etcdbackups"),
    "EtcdBackupSchedule": ("apis/etcdops.dev/v1beta1", "etcdbackupschedules"),
    "EtcdRestore": ("apis/etcdops.dev/v1beta1", "etcdrestores"),
}


class KubeError(Exception):
    """The API server refused, or did not answer (status 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Asked:
    """An object by its name, or all that a selector finds."""

    kind: str
    namespace: str
    name: str = ""
    selector: str = ""

    @property
    def path(self) -> str:
        if self.name:
            return _path(self.kind, self.namespace, self.name)
        return f"{_path(self.kind, self.namespace)}?{urlencode({'labelSelector': self.selector})}"


class Kube:
    """One connection to an API server; not for several threads at once."""

    def __init__(
        self, server: str, *, tls: ssl.SSLContext | None = None, token: str | None = None, timeout: float = 10
    ) -> None:
        parts = urlsplit(server)
        self._base = parts.path.rstrip("/")
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        host, port = parts.hostname or "", parts.port
        self._connection: http.client.HTTPConnection = (
            http.client.HTTPSConnection(host, port or 443, context=tls, timeout=timeout)
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, port or 80, timeout=timeout)
        )

    def get(self, kind: str, namespace: str | None, name: str) -> Manifest | None:
        """The object, or None when there is none."""
        return self._call("GET", _path(kind, namespace, name), absent_ok=True)

    def list(self, kind: str, namespace: str, selector: str) -> list[Manifest]:
        found = self._call("GET", Asked(kind, namespace, selector=selector).path)
        return list((found or {}).get("items", []))

    def read(self, asked: Sequence[Asked]) -> Iterator[Manifests]:
        """What there is of each, in this order: none or one of a name. Take all of it before anything else is done.

        All questions are sent at once, so that the server is at the next one while we are at its last answer.
        """
        for each, (status, content) in zip(asked, self._answers([each.path for each in asked]), strict=True):
            found = _value("GET", each.path, status, content, absent_ok=bool(each.name))
            yield [found] if found and each.name else list((found or {}).get("items", []))

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest | None:
        """The new object, or None when there is one of that name already. Unknown fields are refused."""
        options = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        path = f"{_path(manifest['kind'], manifest['metadata']['namespace'])}?{urlencode(options)}"
        try:
            return self._call("POST", path, manifest)
        except KubeError as error:
            if error.status == 409:
                return None
            raise

    def takes_nothing_new(self, manifest: Manifest) -> bool:
        """Is the namespace being deleted that this object is to be made in?"""
        try:
            self.create(manifest, dry_run=True)
        except KubeError as error:
            return error.status == 403 and "is being terminated" in str(error)
        return False

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Server-side apply: the fields in `manifest` are ours from now on, whoever had them before."""
        meta = manifest["metadata"]
        options = {"fieldManager": FIELD_MANAGER, "force": "true"} | ({"dryRun": "All"} if dry_run else {})
        path = f"{_path(manifest['kind'], meta['namespace'], meta['name'])}?{urlencode(options)}"
        return self._call("PATCH", path, manifest, content_type="application/apply-patch+yaml") or {}

    def patch_status(self, kind: str, namespace: str, name: str, status: Manifest) -> None:
        """Merge into the status; null removes a field."""
        path = f"{_path(kind, namespace, name)}/status"
        self._call("PATCH", path, {"status": status}, content_type="application/merge-patch+json", absent_ok=True)

    def annotate(self, kind: str, namespace: str, name: str, annotations: dict[str, str | None]) -> bool:
        """Set annotations, remove those that are None; tells whether there is such an object."""
        patch = {"metadata": {"annotations": annotations}}
        path = _path(kind, namespace, name)
        return self._call("PATCH", path, patch, content_type="application/merge-patch+json", absent_ok=True) is not None

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        uid: str | None = None,
        how: Literal["", "force", "orphan"] = "",
    ) -> bool:
        """Delete an object, only the one with that uid if it is given; tells whether there was one.

        By "force" a pod is gone at once, even if its node never says that it has stopped; "orphan" leaves what the
        object has made.
        """
        # A Job's pods go with it; all else is deleted that way anyway.
        options: Manifest = {"propagationPolicy": "Orphan" if how == "orphan" else "Background"}
        options |= {"preconditions": {"uid": uid}} if uid else {}
        if how == "force":
            options["gracePeriodSeconds"] = 0
        try:
            return self._call("DELETE", _path(kind, namespace, name), options, absent_ok=True) is not None
        except KubeError as error:
            if error.status == 409 and uid:  # another object of that name: not the one we meant
                return False
            raise

    def log(self, namespace: str, pod: str, container: str) -> str | None:
        """The last words of a container; None when they can't be had now."""
        options = urlencode({"container": container, "tailLines": 20, "limitBytes": 4096})
        status, content = self._send("GET", f"{_path('Pod', namespace, pod)}/log?{options}", None, {})
        return content.decode(errors="replace") if status == 200 else None

    def _call(
        self,
        method: str,
        path: str,
        body: Manifest | None = None,
        *,
        content_type: str = "application/json",
        absent_ok: bool = False,
    ) -> Manifest | None:
        data = None if body is None else json.dumps(body).encode()
        status, content = self._send(method, path, data, {"Content-Type": content_type} if data else {})
        return _value(method, path, status, content, absent_ok=absent_ok)

    def _send(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            self._connection.request(method, f"{self._base}/{path}", data, self._headers | headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise KubeError(0, f"The Kubernetes API server does not answer: {error or type(error).__name__}") from error

    def _answers(self, paths: Sequence[str]) -> Iterator[tuple[int, bytes]]:
        """Answers to GET, each as it comes. HTTP lets a server hang up in between: then one goes after the other."""
        left = list(paths)
        if not left:
            return
        try:
            if self._connection.sock is None:
                self._connection.connect()
            self._connection.sock.sendall(b"".join(map(self._question, left)))
            with self._connection.sock.makefile("rb", buffering=0) as stream:
                incoming, ended = _Incoming(stream), False
                while left and not ended:
                    answer = http.client.HTTPResponse(incoming, method="GET")  # type: ignore[arg-type]
                    answer.begin()
                    status, content, ended = answer.status, answer.read(), answer.will_close
                    del left[0]
                    yield status, content
        except (OSError, http.client.HTTPException):
            pass  # said by the next one, if it is no better
        finally:
            if left:  # nobody may take the answers that are on their way for others
                self._connection.close()
        for path in left:
            yield self._send("GET", path, None, {})

    def _question(self, path: str) -> bytes:
        host = f"{self._connection.host}:{self._connection.port}"
        headers = {"Host": host, **self._headers}
        lines = [f"GET {self._base}/{path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


class _Incoming(io.BufferedReader):
    """What comes over a connection: several answers, each of which takes itself for the only one."""

    def makefile(self, _mode: str) -> _Incoming:
        return self

    def close(self) -> None:
        pass


def _value(method: str, path: str, status: int, content: bytes, *, absent_ok: bool) -> Manifest | None:
    if status == 404 and absent_ok:
        return None
    try:
        value: Manifest = json.loads(content)
    except ValueError:
        value = {"message": content.decode(errors="replace")[:500]}
    if status >= 400:
        raise KubeError(status, f"{method} {path.partition('?')[0]}: {value.get('message')}")
    return value


def connect() -> Kube:
    """As the pod's service account, or, outside a cluster, as $KUBECONFIG says."""
    if os.environ.get("KUBERNETES_SERVICE_HOST") and (_SERVICE_ACCOUNT / "token").exists():
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        tls = ssl.create_default_context(cafile=str(_SERVICE_ACCOUNT / "ca.crt"))
        host = f"[{host}]" if ":" in host else host
        return Kube(f"https://{host}:{port}", tls=tls, token=(_SERVICE_ACCOUNT / "token").read_text().strip())
    return _from_kubeconfig(Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube/config"))


def _from_kubeconfig(path: Path) -> Kube:
    import yaml  # noqa: PLC0415  not needed inside a cluster

    try:
        config = yaml.safe_load(path.read_text())
    except OSError as error:
        raise KubeError(0, f"No way to a Kubernetes cluster: {error}; set KUBECONFIG.") from error

    def named(section: str, name: str) -> Manifest:
        return next(item[section[:-1]] for item in config[section] if item["name"] == name)

    context = named("contexts", config["current-context"])
    cluster, user = named("clusters", context["cluster"]), named("users", context["user"])
    tls = None
    if cluster["server"].startswith("https"):
        ca = cluster.get("certificate-authority-data")
        tls = ssl.create_default_context(
            cafile=cluster.get("certificate-authority"), cadata=base64.b64decode(ca).decode() if ca else None
        )
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile() as pair:  # ssl reads certificates from files only
                for field in ("client-certificate-data", "client-key-data"):
                    pair.write(base64.b64decode(user[field]) + b"\n")
                pair.flush()
                tls.load_cert_chain(pair.name)
        elif "client-certificate" in user:
            tls.load_cert_chain(user["client-certificate"], user["client-key"])
    return Kube(cluster["server"], tls=tls, token=user.get("token"))


def _path(kind: str, namespace: str | None, name: str | None = None) -> str:
    group, plural = _KINDS[kind]
    parts = [group, *(["namespaces", quote(namespace)] if namespace else []), plural, *([quote(name)] if name else [])]
    return "/".join(parts)
