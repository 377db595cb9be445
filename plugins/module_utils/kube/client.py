"""Kubernetes objects as plain dicts, over the connection pool of the official client: only the calls that we need.

It talks to the API server itself, not through ansible-operator's proxy: what it reads is never older than what was
written, and no informer needs permission to list and watch everything.
"""

from __future__ import annotations

import json
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlencode

from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import OpenApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from . import config
from .errors import KubeError
from .manifest import Manifest, Manifests

__all__ = ["FIELD_MANAGER", "Asked", "Kube", "KubeError", "connect", "named"]

FIELD_MANAGER = "etcdops"
_SECONDS = 10.0  # for one request
_LONGEST_MESSAGE = 4096
_LARGEST = 32 << 20  # bytes of an answer: whoever makes very many objects must not take all memory
_AT_ONCE = 2  # reads of one observation; a TLS handshake costs as much as three reads
_KINDS = {
    "ConfigMap": ("api/v1", "configmaps"),
    "Event": ("api/v1", "events"),
    "Node": ("api/v1", "nodes"),
    "PersistentVolume": ("api/v1", "persistentvolumes"),
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


@dataclass(frozen=True)
class Asked:
    """What to read: one object by its name, or all objects that a selector matches."""

    kind: str
    namespace: str | None
    name: str = ""
    selector: str = ""

    @property
    def path(self) -> str:
        if self.name:
            return _path(self.kind, self.namespace, self.name)
        return f"{_path(self.kind, self.namespace)}?{urlencode({'labelSelector': self.selector})}"


class Kube:
    """A client of one API server. Several threads may use it; a fork gets connections of its own.

    `load` gives the settings. It is called again when the API server does not accept the credentials any more.
    """

    def __init__(self, load: Callable[[], Configuration], *, timeout: float = _SECONDS) -> None:
        self._load, self._timeout = load, timeout
        self._renewing = threading.Lock()
        self._client, self._pid = _client(load()), os.getpid()

    def get(self, kind: str, namespace: str | None, name: str) -> Manifest | None:
        """The object, or None when it does not exist."""
        return self._call("GET", _path(kind, namespace, name), absent_ok=True)

    def list(self, kind: str, namespace: str | None, selector: str) -> list[Manifest]:
        found = self._call("GET", Asked(kind, namespace, selector=selector).path)
        return list((found or {}).get("items", []))

    def read(self, asked: Sequence[Asked]) -> Iterator[Manifests]:
        """The objects found for each, in this order; of a name, none or one. The reads run concurrently."""
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            reading = [threads.submit(self._read, each) for each in asked]
            try:
                for one in reading:
                    yield one.result()
            finally:
                threads.shutdown(cancel_futures=True)

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest | None:
        """The new object, or None when one with this name exists. Unknown fields are refused."""
        options = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        options |= {"dryRun": "All"} if dry_run else {}
        path = f"{_path(manifest['kind'], manifest['metadata']['namespace'])}?{urlencode(options)}"
        try:
            return self._call("POST", path, manifest)
        except KubeError as error:
            if error.status == 409:
                return None
            raise

    def takes_nothing_new(self, manifest: Manifest) -> bool:
        """Whether this object cannot be created because its namespace is being deleted."""
        try:
            self.create(manifest, dry_run=True)
        except KubeError as error:
            return error.status == 403 and "is being terminated" in str(error)
        return False

    def take_ownership(self, manifest: Manifest) -> Manifest:
        """What `create` set is as if it had been applied: a later `apply` removes what it does not name any more.

        `manifest` is the object as it was read; a KubeError with status 409 tells that it is not that any more.
        """
        meta = manifest["metadata"]
        created = [
            number
            for number, each in enumerate(meta.get("managedFields", []))
            if (each["manager"], each["operation"], each.get("subresource")) == (FIELD_MANAGER, "Update", None)
        ]
        if not created:
            return manifest
        changes = [{"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]}]
        changes += [
            {"op": "replace", "path": f"/metadata/managedFields/{number}/operation", "value": "Apply"}
            for number in created
        ]
        path = _path(manifest["kind"], meta["namespace"], meta["name"])
        return self._call("PATCH", path, changes, content_type="application/json-patch+json") or manifest

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Server-side apply: we own the fields in `manifest` from now on, whoever owned them before."""
        meta = manifest["metadata"]
        options = {"fieldManager": FIELD_MANAGER, "force": "true"} | ({"dryRun": "All"} if dry_run else {})
        path = f"{_path(manifest['kind'], meta['namespace'], meta['name'])}?{urlencode(options)}"
        return self._call("PATCH", path, manifest, content_type="application/apply-patch+yaml") or {}

    def patch_status(
        self, kind: str, namespace: str, name: str, status: Manifest, resource_version: str = ""
    ) -> Manifest | None:
        """Merge into the status; None removes a field. Returns as `annotate` does."""
        return self._merge(f"{_path(kind, namespace, name)}/status", {"status": status}, resource_version)

    def annotate(
        self, kind: str, namespace: str, name: str, annotations: dict[str, str | None], resource_version: str = ""
    ) -> Manifest | None:
        """Set annotations, remove those that are None. Returns the object as it is now.

        None when it does not exist; with `resource_version`, also when it has changed since that version was read.
        """
        return self._merge(_path(kind, namespace, name), {"metadata": {"annotations": annotations}}, resource_version)

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        same: Mapping[str, str] | None = None,
        how: Literal["", "force", "orphan"] = "",
    ) -> bool:
        """Delete an object; False when there was none to delete.

        It is deleted only if it still has the uid and the resourceVersion in `same`.

        "force" removes a pod at once, even if its node never confirms that it stopped; "orphan" keeps the object's
        dependents.
        """
        # The pods of a Job are deleted with it; for all other kinds this is the default.
        options: Manifest = {"propagationPolicy": "Orphan" if how == "orphan" else "Background"}
        options |= {"preconditions": dict(same)} if same else {}
        if how == "force":
            options["gracePeriodSeconds"] = 0
        try:
            return self._call("DELETE", _path(kind, namespace, name), options, absent_ok=True) is not None
        except KubeError as error:
            if error.status == 409 and same:  # another object has the name now, or this one has changed
                return False
            raise

    def log(self, namespace: str, pod: str, container: str, lines: int = 20, size: int = 4096) -> str | None:
        """The last lines of a container's log, and `size` bytes of them; None when there is none to give now."""
        options = urlencode({"container": container, "tailLines": lines, "limitBytes": size})
        status, content = self._send("GET", f"{_path('Pod', namespace, pod)}/log?{options}")
        return content.decode(errors="replace") if status == 200 else None

    def _merge(self, path: str, patch: Manifest, resource_version: str) -> Manifest | None:
        if resource_version:
            patch = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": resource_version}}
        try:
            return self._call("PATCH", path, patch, content_type="application/merge-patch+json", absent_ok=True)
        except KubeError as error:
            if error.status == 409 and resource_version:
                return None
            raise

    def _read(self, asked: Asked) -> Manifests:
        found = self._call("GET", asked.path, absent_ok=bool(asked.name))
        return [found] if found and asked.name else list((found or {}).get("items", []))

    def _call(
        self,
        method: str,
        path: str,
        body: Manifest | Manifests | None = None,
        *,
        content_type: str = "application/json",
        absent_ok: bool = False,
    ) -> Manifest | None:
        status, content = self._send(method, path, body, content_type)
        return _value(method, path, status, content, absent_ok=absent_ok)

    def _send(
        self, method: str, path: str, body: Manifest | Manifests | None = None, content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        client = self._client
        if self._pid != os.getpid():  # on a connection that is shared with the parent, answers would be mixed up
            client = self._renewed(client)
        status, content = self._send_with(client, method, path, body, content_type)
        if status == 401:
            status, content = self._send_with(self._renewed(client), method, path, body, content_type)
        return status, content

    def _renewed(self, stale: ApiClient) -> ApiClient:
        with self._renewing:
            if self._client is stale:  # no other thread was here first
                self._client, self._pid = _client(self._load()), os.getpid()
            return self._client

    def _send_with(
        self, client: ApiClient, method: str, path: str, body: Manifest | Manifests | None, content_type: str
    ) -> tuple[int, bytes]:
        headers = {"Accept": "application/json", "User-Agent": FIELD_MANAGER}
        headers |= {} if body is None else {"Content-Type": content_type}
        try:
            # Asking for them refreshes credentials that expire. A token file may end in a newline.
            for each in client.configuration.auth_settings().values():
                headers[each["key"]] = each["value"].strip()
            url = f"{client.configuration.host}/{path}"
            answer = client.call_api(method, url, headers, body, _request_timeout=self._timeout)
            content = answer.response.read(_LARGEST + 1, decode_content=True)
        except (ConfigException, HTTPError, OpenApiException, OSError) as error:
            server = f"The Kubernetes API server {client.configuration.host}{_through_proxy(client)}"
            raise KubeError(0, f"{server} does not answer: {_cause(error)}") from error
        if len(content) > _LARGEST:
            answer.response.close()
            what = path.partition("?")[0]
            raise KubeError(
                0, f"{method} {what}: the answer is larger than {_LARGEST >> 20} MiB. Delete objects there."
            )
        return answer.status, content


def named(api: Kube, kind: str, namespace: str, names: Sequence[str]) -> Manifests:
    """The objects of a kind that have one of these names."""
    return [each for found in api.read([Asked(kind, namespace, name) for name in names]) for each in found]


def connect() -> Kube:
    """A client with the settings that config.load() finds."""
    return Kube(config.load)


def _client(configuration: Configuration) -> ApiClient:
    try:
        client = ApiClient(configuration)
    except (HTTPError, ImportError, ValueError) as error:
        raise KubeError(0, f"No client for {configuration.host}: {error}. Check the cluster's proxy-url.") from error
    if configuration.host.startswith("https:"):
        # One context for all connections: otherwise each of them reads all certificates again.
        options = client.rest_client.pool_manager.connection_pool_kw
        for name in ("ca_certs", "ca_cert_data", "cert_file", "cert_reqs", "key_file"):
            options.pop(name, None)
        options["ssl_context"] = _tls(configuration)
    return client


def _tls(configuration: Configuration) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except (OSError, ValueError) as error:
        raise KubeError(0, f"The certificates for {configuration.host} cannot be used: {error}") from error
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _through_proxy(client: ApiClient) -> str:
    proxy = client.rest_client.pool_manager.proxy  # without its user and password
    return f" (through the proxy {proxy.host}:{proxy.port})" if proxy else ""


def _cause(error: BaseException) -> str:
    """The innermost reason, such as "Connection refused": the library wraps it several times."""
    while inner := getattr(error, "reason", None) or error.__cause__ or error.__context__:
        if not isinstance(inner, BaseException):
            break
        error = inner
    return str(error) or type(error).__name__


def _value(method: str, path: str, status: int, content: bytes, *, absent_ok: bool) -> Manifest | None:
    if status == 404 and absent_ok:
        return None
    try:
        value: Manifest = json.loads(content)
    except ValueError:
        value = {"message": content.decode(errors="replace")[:500]}
    if status >= 300:
        said = str(value.get("message"))[:_LONGEST_MESSAGE]  # it may quote the whole object
        raise KubeError(status, f"{method} {path.partition('?')[0]}: {said}", said)
    return value


def _path(kind: str, namespace: str | None, name: str | None = None) -> str:
    group, plural = _KINDS[kind]
    parts = [group, *(["namespaces", quote(namespace)] if namespace else []), plural, *([quote(name)] if name else [])]
    return "/".join(parts)
