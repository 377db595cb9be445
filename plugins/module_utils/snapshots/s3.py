"""How a bucket of S3, or of a store with its protocol, is opened. Snapshots are written by upload.py."""

from __future__ import annotations

import os
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .bucket import Bucket
from .errors import StoreError
from .object_store_errors import explain, request_errors, status_of

_TRIES = 3
_CONNECTING = timedelta(seconds=5)
_ANSWERING = timedelta(seconds=120)  # sending one part, and its answer
_WHOLE = timedelta(days=7)  # reading a snapshot: no limit but the Job's
_SIGNED = timedelta(minutes=5)
# Set in a pod or container on purpose (IRSA, EKS Pod Identity, ECS), other than what a node offers to all its pods.
_WORKLOAD_IDENTITY = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
)


@dataclass(frozen=True)
class Settings:
    """How to reach a store. What is None is as for AWS itself."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool = False
    ca: str | None = None  # a file
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    node_credentials: bool = False


@dataclass(frozen=True)
class _Connection:
    """What it takes to send a request about a bucket."""

    url: str  # of the bucket
    service: str
    ca: str | None
    config: Mapping[str, Any] = field(repr=False)

    def store(self, url: str) -> Any:
        from obstore.store import S3Store  # noqa: PLC0415  slow to import, and files don't need it

        # "Virtual hosted" to obstore means that the endpoint names the bucket already; ours always does.
        # AWS_ENDPOINT_URL_S3 of the environment would override "endpoint".
        config: Any = {**self.config, "aws_endpoint_url_s3": url, "virtual_hosted_style_request": True}
        client: Any = {
            "connect_timeout": _CONNECTING,
            "read_timeout": _ANSWERING,
            "timeout": _WHOLE,
            "allow_http": url.startswith("http://"),
        }
        if self.ca:
            client["root_certificate"] = Path(self.ca).read_bytes()
        retries: Any = {"max_retries": _TRIES - 1, "retry_timeout": _ANSWERING}
        return S3Store(config=config, client_options=client, retry_config=retries)


def open_bucket(name: str, settings: Settings) -> Bucket:
    service = f"the store {settings.endpoint}" if settings.endpoint else "AWS"
    _check_ca(settings.ca, service)
    connection = _Connection(_bucket_url(name, settings), service, settings.ca, _config(name, settings, service))
    try:
        store = connection.store(connection.url)
    except ValueError as error:
        raise StoreError(f"{service} can't be used: {error}") from error
    return Bucket(f"s3://{name}", service, store, partial(_abort_uploads, connection, f"s3://{name}"))


def _config(name: str, settings: Settings, service: str) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bucket": name,
        "region": settings.region or "us-east-1",
        "disable_bulk_delete": True,  # not every store has it
    }
    if settings.access_key and settings.secret_key:
        config |= {"access_key_id": settings.access_key, "secret_access_key": settings.secret_key}
    elif settings.access_key or settings.secret_key:
        raise StoreError(f"the credentials for {service} are incomplete: give both the access key and its secret")
    elif not settings.node_credentials and not any(os.environ.get(each) for each in _WORKLOAD_IDENTITY):
        raise StoreError(
            f"there are no credentials for {service}: give an access key and its secret, or a workload identity, or"
            " allow those of the node"
        )
    return config | _integrity(settings)


def _integrity(settings: Settings) -> dict[str, Any]:
    """How the store notices that a part changed in transit."""
    if not settings.endpoint:
        return {"checksum_algorithm": "SHA256"}  # AWS demands one where objects are locked; not every store knows it
    # TLS sees to it. Signing the sha256 of every part as well would cost both ends a tenth of the throughput.
    return {"unsigned_payload": settings.endpoint.startswith("https://")}


def _bucket_url(name: str, settings: Settings) -> str:
    endpoint = settings.endpoint or f"https://s3.{settings.region or 'us-east-1'}.amazonaws.com"
    url = urllib.parse.urlsplit(endpoint.rstrip("/"))
    if settings.path_style:
        return f"{url.geturl()}/{name}"
    return url._replace(netloc=f"{name}.{url.netloc}").geturl()


def _check_ca(ca: str | None, service: str) -> None:
    if not ca:
        return
    if not Path(ca).is_file():
        raise StoreError(f"there is no file {ca} with the CA of {service}")
    try:
        ssl.create_default_context(cafile=ca)
    except ssl.SSLError as error:
        raise StoreError(f"{ca} holds no certificate of the CA of {service}: {error}") from error


# -- uploads that a killed writer left. obstore has no call for them.


def _abort_uploads(connection: _Connection, bucket: str, key: str) -> int:
    """Discard the unfinished uploads of a key; how many there were."""
    try:
        uploads = _uploads(connection, key)
        for upload in uploads:
            _request(connection, "DELETE", f"/{urllib.parse.quote(key)}", {"uploadId": upload})
    except request_errors() as error:
        raise StoreError(explain(error, connection.service, f"{bucket}/{key}")) from error
    return len(uploads)


def _uploads(connection: _Connection, key: str) -> list[str]:
    listed = ElementTree.fromstring(_request(connection, "GET", "", {"prefix": key, "uploads": ""}))  # noqa: S314
    found = [{_tag(child): child.text or "" for child in each} for each in listed.iter() if _tag(each) == "Upload"]
    return [each["UploadId"] for each in found if each.get("Key") == key]


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _request(connection: _Connection, method: str, path: str, query: Mapping[str, str]) -> bytes:
    request = urllib.request.Request(_signed(connection, method, path, query), method=method)  # noqa: S310
    context = ssl.create_default_context(cafile=connection.ca)
    tried = 0
    while True:
        tried += 1
        try:
            with urllib.request.urlopen(request, timeout=_ANSWERING.seconds, context=context) as answer:  # noqa: S310
                return bytes(answer.read())
        except OSError as error:
            status = status_of(error)
            if status == 404 and method == "DELETE":
                return b""  # gone already
            if tried == _TRIES or (status and status < 500):
                raise
        time.sleep(tried)


def _signed(connection: _Connection, method: str, path: str, query: Mapping[str, str]) -> str:
    """A URL signed with the store's credentials, whatever their source.

    obstore signs URLs of objects only, so it gets the URL with its query as the endpoint. What it appends for the
    object becomes the value of a parameter that begins with x-: S3 ignores those.
    """
    import obstore  # noqa: PLC0415

    text = urllib.parse.urlencode({**query, "x-signed-by": ""}, quote_via=urllib.parse.quote)
    sign: Any = obstore.sign
    return str(sign(connection.store(f"{connection.url}{path}?{text}"), method, "obstore", _SIGNED))
