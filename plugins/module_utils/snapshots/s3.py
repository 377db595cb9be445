"""S3-compatible stores, spoken to directly: nine requests, signed as AWS asks for (version 4), with little memory.

botocore would take 25 MiB of the 128 that a Job may have before it has sent a byte. It is only asked for credentials
when none are given.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import os
import secrets
import ssl
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .codec import BrokenError, Reader, StoreError, UnsureError, Writer
from .s3_upload import AT_ONCE, CHECKSUM, LARGEST, Upload, Whole, chunked

_TRIES = 3
_CONNECTING, _ANSWERING = 5, 60  # seconds
_SHA256 = "x-amz-content-sha256"
_ATTEMPT = "x-amz-meta-etcdops-attempt"  # tells whose upload an object came from
_WRONG_KEY = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidToken",
    "ExpiredToken",
    "403",
    "Forbidden",
    "XAdminUserNotFound",  # versitygw's word
}


@dataclass(frozen=True)
class Settings:
    """How to reach a store. What is None is as for AWS itself."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool = False
    ca: str | None = None  # a file
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Credentials:
    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Content:
    """What is sent with a request, and how often at most."""

    body: bytes | memoryview = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    tries: int = _TRIES


class Refused(Exception):  # noqa: N818  an answer, not a mistake
    """What the store said when it did not do what it was asked for."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.status, self.code, self.message = status, code, message


_TROUBLES = (Refused, OSError, http.client.HTTPException)  # what may come of a request


def signed(
    credentials: Credentials, region: str, request: tuple[str, str, str, str], given: Mapping[str, str], now: datetime
) -> dict[str, str]:
    """The headers of a request (method, host, path and query as they are sent), signed."""
    method, host, path, query = request
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": host, "x-amz-date": stamp}
    headers |= {"x-amz-security-token": credentials.token} if credentials.token else {}
    headers |= {name: value for name, value in given.items() if name.startswith("x-amz-")}
    headers = dict(sorted(headers.items()))
    payload, names = given[_SHA256], ";".join(headers)
    canonical = [method, path, query, *(f"{name}:{value}" for name, value in headers.items()), "", names, payload]
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256("\n".join(canonical).encode()).hexdigest()])
    key = f"AWS4{credentials.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    what = f"Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**given, **headers, "Authorization": f"AWS4-HMAC-SHA256 {what}"}


class S3:
    def __init__(self, settings: Settings) -> None:
        self._region = settings.region or "us-east-1"
        self._where = f"the store {settings.endpoint}" if settings.endpoint else "AWS"
        url = urllib.parse.urlsplit(settings.endpoint or f"https://s3.{self._region}.amazonaws.com")
        self._secure, self._host = url.scheme == "https", url.netloc
        self._path_style = settings.path_style
        self._context = self._trust(settings.ca) if self._secure else None
        self._credentials = _credentials(settings)
        if self._credentials is None:
            raise StoreError(f"there are no credentials for {self._where}")
        self._local = threading.local()  # a connection for each thread

    def _trust(self, ca: str | None) -> ssl.SSLContext:
        if ca and not Path(ca).is_file():
            raise StoreError(f"there is no file {ca} with the CA of {self._where}")
        try:
            return ssl.create_default_context(cafile=ca)
        except ssl.SSLError as error:
            raise StoreError(f"{ca} holds no certificate of the CA of {self._where}: {error}") from error

    def exists(self, bucket: str, key: str) -> bool:
        """Forbidden counts as no: whether it exists is not for everybody to know who may write."""
        with self._said(f"s3://{bucket}/{key}"):
            return self._found(bucket, key) == "200"

    def _found(self, bucket: str, key: str) -> str:
        """200: it is there; 404: it is not; 403: that is not for us to know."""
        try:
            self._ask("HEAD", bucket, key)
        except Refused as refusal:
            if refusal.code not in ("404", "403"):
                raise
            return refusal.code
        return "200"

    @contextmanager
    def writing(self, bucket: str, key: str, size: int | None = None) -> Iterator[Writer]:
        """Something to write an object to: to be seen when it is whole, gone when it fails.

        With a size it goes in one request, if it can; BrokenError then says that it is worth a try without.
        """
        if self.exists(bucket, key):
            raise StoreError(f"s3://{bucket}/{key} exists already, and nothing is ever overwritten")
        # What goes in one piece can't be hashed, and so not signed, before: only where TLS keeps others away from it.
        whole = size is not None and self._secure and size <= LARGEST
        way = self._whole(bucket, key, size or 0) if whole else self._in_parts(bucket, key)
        with self._said(f"s3://{bucket}/{key}"), way as writer:
            yield writer

    @contextmanager
    def _whole(self, bucket: str, key: str, size: int) -> Iterator[Whole]:
        attempt = secrets.token_hex(16)
        request = ("PUT", *self._target(bucket, key), "")
        given = {**chunked(size), "If-None-Match": "*", _ATTEMPT: attempt}
        try:
            whole = Whole(self._begun(request, given), size)
            yield whole
            self._put(whole, bucket, key, attempt)
        finally:
            self._forget()  # if it was not all sent, that is how the store hears of it

    def _begun(self, request: tuple[str, str, str, str], given: Mapping[str, str]) -> http.client.HTTPConnection:
        """A connection over which a request has been begun: its body comes next."""
        method, host, path, _ = request
        connection = self._connection(host)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in self._signed(request, given).items():
            connection.putheader(name, value)
        connection.endheaders()
        return connection

    def _put(self, whole: Whole, bucket: str, key: str, attempt: str) -> None:
        """End it, and see that the store has it as it was sent."""
        what = f"{self._where} did not take s3://{bucket}/{key}"
        try:
            answer = whole.end()
            if answer.status < 300 and answer.headers.get(CHECKSUM) == whole.checksum:
                return
            problem: Exception | None = _refused(answer) if answer.status >= 300 else None
        except (OSError, http.client.HTTPException) as error:
            problem = error
        self._forget()
        if isinstance(problem, Refused) and problem.status == 412:
            raise problem
        if isinstance(problem, Refused) and problem.status < 500:
            raise BrokenError(f"{what}: {problem}") from problem
        stored = self._looked_for(bucket, key, attempt, tries=_TRIES if problem else 1)
        if stored == whole.size:
            return
        if stored is None:
            raise BrokenError(f"{what}: {problem or 'it is not there'}") from problem
        # A store that does not know of chunks has kept them as they came.
        try:
            self._ask("DELETE", bucket, key)
        except _TROUBLES as error:
            raise UnsureError(f"{what} as it was sent, nor does it let go of it: {error}") from error
        raise BrokenError(f"{what}: it made {stored} bytes of {whole.size}")

    def _looked_for(self, bucket: str, key: str, attempt: str, tries: int) -> int | None:
        """The size of what this attempt has made; it may not be there yet when the answer was lost."""
        for tried in range(1, tries + 1):
            try:
                stored = self._size_of(bucket, key, attempt)
            except _TROUBLES as error:
                message = f"{self._where} was sent s3://{bucket}/{key} and does not say whether it has it: {error}"
                raise UnsureError(message) from error
            if stored is not None or tried == tries:
                return stored
            time.sleep(tried)
        return None

    @contextmanager
    def _in_parts(self, bucket: str, key: str) -> Iterator[Upload]:
        attempt = secrets.token_hex(16)
        begun = _xml(self._ask("POST", bucket, key, {"uploads": ""}, Content(headers={_ATTEMPT: attempt})))
        upload = {"uploadId": begun.get("UploadId", "")}

        def send(number: int, data: memoryview) -> str:
            return self._send(bucket, key, {"partNumber": str(number), **upload}, data)

        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                parts = Upload(send, pool)
                yield parts
                listed = parts.end()
            self._complete(bucket, key, upload, listed, attempt)
        except BaseException as error:
            if not self._aborted(bucket, key, upload) and isinstance(error, Exception):
                told = self._words(f"s3://{bucket}/{key}", error)
                raise UnsureError(f"{told}; parts of s3://{bucket}/{key} may be left there") from error
            raise

    def _aborted(self, bucket: str, key: str, upload: Mapping[str, str]) -> bool:
        try:
            self._ask("DELETE", bucket, key, upload)
        except _TROUBLES as error:
            return isinstance(error, Refused) and error.status == 404  # it is gone already
        return True

    @contextmanager
    def reading(self, bucket: str, key: str) -> Iterator[Reader]:
        with self._said(f"s3://{bucket}/{key}"):
            answer = self._answer("GET", bucket, key)
            try:
                yield _Body(answer)
            finally:
                self._forget()

    def delete(self, bucket: str, key: str) -> bool:
        """Delete the object and uploads of it that were never finished."""
        with self._said(f"s3://{bucket}/{key}"):
            there = self._found(bucket, key) != "404"
            if there:
                self._ask("DELETE", bucket, key)
            listed = ElementTree.fromstring(self._ask("GET", bucket, "", {"prefix": key, "uploads": ""}))  # noqa: S314
            uploads = [_children(each) for each in listed.iter() if _name(each) == "Upload"]
            unfinished = [each["UploadId"] for each in uploads if each.get("Key") == key]
            for upload in unfinished:
                self._ask("DELETE", bucket, key, {"uploadId": upload})
        return there or bool(unfinished)

    def _send(self, bucket: str, key: str, query: Mapping[str, str], data: memoryview) -> str:
        try:
            answer = self._answer("PUT", bucket, key, query, Content(data))
        except Refused as refusal:
            if "Content-MD5" not in refusal.message:
                raise
            # Where objects are locked, AWS wants this besides the sha256 that every request has.
            digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
            answer = self._answer("PUT", bucket, key, query, Content(data, {"Content-MD5": digest}))
        answer.read()
        return answer.headers.get("ETag", "")

    def _complete(self, bucket: str, key: str, upload: Mapping[str, str], parts: list[str], attempt: str) -> None:
        """Make the object of its parts. If the answer is lost, the object itself tells whether it was done."""
        listed = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{etag.replace('&', '&amp;')}</ETag></Part>"
            for number, etag in enumerate(parts, 1)
        )
        body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
        content, lost = Content(body, {"If-None-Match": "*"}, tries=1), False
        for tried in range(1, _TRIES + 1):
            try:
                answer = _xml(self._answer("POST", bucket, key, upload, content).read())
                if "ETag" not in answer:  # AWS says 200 first, and then how it went
                    raise Refused(500, answer.get("Code", "InternalError"), answer.get("Message", ""))
                return
            except Refused as refusal:
                if refusal.status < 500 and not lost:
                    raise
                problem: Exception = refusal
            except (OSError, http.client.HTTPException, ElementTree.ParseError) as error:
                self._forget()
                problem = error
            lost = True
            with suppress(*_TROUBLES):
                if self._size_of(bucket, key, attempt) is not None:
                    return
            time.sleep(tried)
        raise UnsureError(
            f"{self._where} was asked to complete s3://{bucket}/{key} and did not say whether it did"
        ) from problem

    def _size_of(self, bucket: str, key: str, attempt: str) -> int | None:
        """The size of the object that this attempt has made; None if there is none."""
        try:
            answer = self._answer("HEAD", bucket, key)
        except Refused as refusal:
            if refusal.code == "404":
                return None
            raise
        answer.read()
        return int(answer.headers.get("Content-Length", 0)) if answer.headers.get(_ATTEMPT) == attempt else None

    # -- requests

    def _ask(self, *request: Any) -> bytes:
        return self._answer(*request).read()

    def _answer(
        self,
        method: str,
        bucket: str,
        key: str,
        query: Mapping[str, str] | None = None,
        content: Content | None = None,
    ) -> http.client.HTTPResponse:
        """What the store answers when it does what it is asked for; Refused when it doesn't."""
        host, path = self._target(bucket, key)
        pairs = sorted((query or {}).items())
        text = "&".join(f"{name}={urllib.parse.quote(value, safe='-_.~')}" for name, value in pairs)
        sent, tried = content or Content(), 0
        while True:
            tried += 1
            try:
                answer = self._once((method, host, path, text), sent)
            except (OSError, http.client.HTTPException) as error:
                self._forget()
                if tried >= sent.tries or isinstance(error, ssl.SSLCertVerificationError):
                    raise
            else:
                if answer.status < 300:
                    return answer
                refusal = _refused(answer)
                if tried >= sent.tries or answer.status < 500:
                    raise refusal
            time.sleep(tried)

    def _target(self, bucket: str, key: str) -> tuple[str, str]:
        """Host and path."""
        host = self._host if self._path_style else f"{bucket}.{self._host}"
        return host, "/" + urllib.parse.quote(f"{bucket}/{key}" if self._path_style else key, safe="/-_.~")

    def _once(self, request: tuple[str, str, str, str], content: Content) -> http.client.HTTPResponse:
        method, host, path, query = request
        headers = self._signed(request, {**content.headers, _SHA256: hashlib.sha256(content.body).hexdigest()})
        connection = self._connection(host)
        connection.request(method, f"{path}?{query}" if query else path, content.body or None, headers)
        return connection.getresponse()

    def _signed(self, request: tuple[str, str, str, str], given: Mapping[str, str]) -> dict[str, str]:
        assert self._credentials  # noqa: S101
        return signed(self._credentials, self._region, request, given, datetime.now(UTC))

    def _connection(self, host: str) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if found is None or found.sock is None:  # it would connect by itself again, with the shorter patience
            found = (
                http.client.HTTPSConnection(host, timeout=_CONNECTING, context=self._context)
                if self._secure
                else http.client.HTTPConnection(host, timeout=_CONNECTING)
            )
            found.connect()
            found.sock.settimeout(_ANSWERING)
            self._local.connection = found
        return found

    def _forget(self) -> None:
        if connection := getattr(self._local, "connection", None):
            connection.close()
            self._local.connection = None

    # -- words

    @contextmanager
    def _said(self, what: str) -> Iterator[None]:
        """Turns what went wrong into words."""
        try:
            yield
        except _TROUBLES as error:
            raise StoreError(self._words(what, error)) from error

    def _words(self, what: str, error: Exception) -> str:
        match error:
            case Refused():
                return self._refusal(what, error)
            case ssl.SSLCertVerificationError():
                why = error.verify_message
                return f"the certificate of {self._where} is not trusted ({why}); give the CA that signed it"
            case OSError() | http.client.HTTPException():
                return f"{self._where} can't be reached: {error}"
        return str(error)

    def _refusal(self, what: str, refusal: Refused) -> str:
        code, message = refusal.code, refusal.message
        bucket = what.removeprefix("s3://").partition("/")[0]
        if code == "NoSuchBucket":
            return f"{self._where} has no bucket {bucket}; create it, or name another one"
        if code in ("NoSuchKey", "404"):
            return f"{what} does not exist at {self._where}"
        if code in _WRONG_KEY:
            return f"{self._where} refuses the access key or its secret ({code}); correct the credentials"
        if code == "AccessDenied":
            return f"{self._where} denies access to {what}; the credentials are wrong or may not do this"
        if code in ("PreconditionFailed", "ConditionalRequestConflict"):
            return f"{what} exists already, and nothing is ever overwritten"
        return f"{self._where} refuses {what}: {message or code} ({code})"


class _Body:
    """Says when the store hung up early, which http.client does not when it reads in pieces."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer = answer

    def read(self, limit: int = 1 << 20) -> bytes:
        data = self._answer.read(limit)
        if not data and self._answer.length:
            raise StoreError("the store ended its answer early")
        return data


def _credentials(settings: Settings) -> Credentials | None:
    if settings.access_key and settings.secret_key:
        return Credentials(settings.access_key, settings.secret_key, os.environ.get("AWS_SESSION_TOKEN"))
    import botocore.session  # noqa: PLC0415  it knows all the places where a machine may have them

    found = botocore.session.get_session().get_credentials()
    frozen = found.get_frozen_credentials() if found else None
    return Credentials(frozen.access_key, frozen.secret_key, frozen.token) if frozen else None


def _refused(answer: http.client.HTTPResponse) -> Refused:
    try:
        said = _xml(answer.read())
    except ElementTree.ParseError:  # a HEAD has none
        said = {}
    return Refused(answer.status, said.get("Code", str(answer.status)), said.get("Message", answer.reason))


def _xml(content: bytes) -> dict[str, str]:
    """The values right below the top of an answer."""
    return _children(ElementTree.fromstring(content))  # noqa: S314  it comes from the store that holds our data


def _children(element: ElementTree.Element) -> dict[str, str]:
    return {_name(child): child.text or "" for child in element}


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
