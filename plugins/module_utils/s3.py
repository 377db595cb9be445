"""S3-compatible stores, through botocore: streaming in both directions with little memory, errors in plain words."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from .codec import Reader, StoreError

_PART = 5 << 20  # the least that S3 takes; 10000 of them, the most that it takes, are more than etcd can hold
_AT_ONCE = 2
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
    """How to reach a store. What is None is left to botocore: the environment, or AWS itself."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool = False
    ca: str | None = None  # a file
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)


class S3:
    def __init__(self, settings: Settings) -> None:
        import botocore.session  # noqa: PLC0415  slow to import, and only this needs it
        from botocore.config import Config  # noqa: PLC0415

        self._where = settings.endpoint or "AWS"
        config = Config(
            connect_timeout=5,
            read_timeout=60,
            retries={"total_max_attempts": 3, "mode": "standard"},
            s3={"addressing_style": "path" if settings.path_style else "auto"},
            # Content-MD5 instead, which every store knows.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            max_pool_connections=_AT_ONCE + 1,
        )
        with self._said("it"):
            self._client: Any = botocore.session.get_session().create_client(
                "s3",
                endpoint_url=settings.endpoint,
                region_name=settings.region or "us-east-1",
                verify=settings.ca or True,
                aws_access_key_id=settings.access_key,
                aws_secret_access_key=settings.secret_key,
                config=config,
            )

    def exists(self, bucket: str, key: str) -> bool:
        from botocore.exceptions import ClientError  # noqa: PLC0415

        with self._said(f"s3://{bucket}/{key}"):
            try:
                self._client.head_object(Bucket=bucket, Key=key)
            except ClientError as error:
                # Forbidden: whether it exists is not for everybody to know who may write.
                if error.response["Error"]["Code"] in ("404", "NoSuchKey", "NotFound", "403"):
                    return False
                raise
        return True

    @contextmanager
    def writing(self, bucket: str, key: str) -> Iterator[Upload]:
        """An upload in parts: to be seen when it is whole, gone when it fails."""
        if self.exists(bucket, key):
            raise StoreError(f"s3://{bucket}/{key} exists already, and nothing is ever overwritten")
        with self._said(f"s3://{bucket}/{key}"):
            begun = self._client.create_multipart_upload(Bucket=bucket, Key=key)
            target = {"Bucket": bucket, "Key": key, "UploadId": begun["UploadId"]}
            try:
                with ThreadPoolExecutor(_AT_ONCE) as pool:
                    upload = Upload(lambda number, data: self._send(target, number, data), pool)
                    yield upload
                    parts = upload.end()
                self._client.complete_multipart_upload(**target, MultipartUpload={"Parts": parts}, IfNoneMatch="*")
            except BaseException:
                with suppress(Exception):
                    self._client.abort_multipart_upload(**target)
                raise

    @contextmanager
    def reading(self, bucket: str, key: str) -> Iterator[Reader]:
        with self._said(f"s3://{bucket}/{key}"):
            body = self._client.get_object(Bucket=bucket, Key=key)["Body"]
            with body:
                yield body

    def delete(self, bucket: str, key: str) -> bool:
        """Delete the object and uploads of it that were never finished."""
        with self._said(f"s3://{bucket}/{key}"):
            there = self.exists(bucket, key)
            if there:
                self._client.delete_object(Bucket=bucket, Key=key)
            listed = self._client.list_multipart_uploads(Bucket=bucket, Prefix=key).get("Uploads", [])
            unfinished = [each["UploadId"] for each in listed if each["Key"] == key]
            for upload in unfinished:
                self._client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)
        return there or bool(unfinished)

    def _send(self, target: dict[str, str], number: int, data: bytes) -> dict[str, Any]:
        digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        answer = self._client.upload_part(**target, PartNumber=number, Body=data, ContentMD5=digest)
        return {"ETag": answer["ETag"], "PartNumber": number}

    @contextmanager
    def _said(self, what: str) -> Iterator[None]:
        """Turns botocore's errors into words."""
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError  # noqa: PLC0415

        try:
            yield
        except ClientError as error:
            raise StoreError(self._refusal(what, error.response["Error"])) from error
        except (BotoCoreError, HTTPClientError, ValueError) as error:
            raise StoreError(self._trouble(error)) from error

    def _refusal(self, what: str, error: dict[str, str]) -> str:
        code, message = error.get("Code", ""), error.get("Message", "")
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

    def _trouble(self, error: Exception) -> str:
        match type(error).__name__:
            case "NoCredentialsError" | "PartialCredentialsError":
                return f"there are no credentials for {self._where}"
            case "SSLError":
                return f"the certificate of {self._where} is not trusted ({error}); give the CA that signed it"
            case "EndpointConnectionError" | "ConnectTimeoutError" | "ConnectionClosedError" | "ReadTimeoutError":
                return f"{self._where} can't be reached: {error}"
        return f"{self._where}: {error}"


class Upload:
    """Collects bytes into parts and sends a few of them side by side."""

    def __init__(self, send: Callable[[int, bytes], dict[str, Any]], pool: ThreadPoolExecutor) -> None:
        self._send = send
        self._pool = pool
        self._pieces: list[bytes] = []
        self._size = 0
        self._parts: list[Future[dict[str, Any]]] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= _PART:
            self._flush()
        return len(data)

    def end(self) -> list[dict[str, Any]]:
        if self._size or not self._parts:
            self._flush()
        return [part.result() for part in self._parts]

    def _flush(self) -> None:
        if len(self._parts) >= _AT_ONCE:  # no more in memory than are under way; and a failure is heard of early
            self._parts[-_AT_ONCE].result()
        part, self._pieces, self._size = b"".join(self._pieces), [], 0
        self._parts.append(self._pool.submit(self._send, len(self._parts) + 1, part))
