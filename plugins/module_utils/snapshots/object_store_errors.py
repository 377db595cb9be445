"""What object stores refuse, and why they can't be reached, in plain words.

obstore has few exception types; the store's own code and the cause of a failed connection are in its text only.
"""

from __future__ import annotations

import http.client
import re
import ssl
import urllib.error

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_CERTIFICATE = re.compile(r"InvalidCertificate\(\s*(\w+)")
# The cause is the innermost text of the error's debug form.
_CAUSES = (re.compile(r'message: "([^"]+)"'), re.compile(r'error: "([^"]+)"'))
_WRONG_KEY = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidToken",
    "ExpiredToken",
    "XAdminUserNotFound",  # versitygw
}


def request_errors() -> tuple[type[Exception], ...]:
    """The exceptions that a request to an object store may end in."""
    from obstore.exceptions import BaseError  # noqa: PLC0415  slow to import, and files don't need it

    return (BaseError, OSError, http.client.HTTPException)


def status_of(error: Exception) -> int | None:
    """The HTTP status that the store answered; None if it did not answer."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code
    found = _STATUS.search(str(error))
    return int(found[1]) if found else None


def code_of(error: Exception) -> str:
    """The store's own code, such as NoSuchBucket; "" if it gave none."""
    found = _CODE.search(_text(error))
    return found[1] if found else ""


def explain(error: Exception, service: str, url: str) -> str:
    """Why a request about the object at `url` (scheme://bucket/key) failed."""
    if not isinstance(error, request_errors()):
        return str(error)
    bucket = url.partition("://")[2].partition("/")[0]
    if untrusted := _untrusted(error):
        return (
            f"the certificate of {service} is not trusted for bucket {bucket} ({untrusted}); give the CA that signed it"
        )
    status = status_of(error)
    if status is None:
        return f"{service} can't be reached for bucket {bucket}: {_cause(error)}"
    return _refusal(service, url, bucket, status, error)


def _refusal(service: str, url: str, bucket: str, status: int, error: Exception) -> str:
    code = code_of(error)
    message = _MESSAGE.search(_text(error))
    if code == "NoSuchBucket":
        return f"{service} has no bucket {bucket}; create it, or name another one"
    if code in _WRONG_KEY or (status in (401, 403) and not code):
        why = code or f"HTTP {status}"
        return f"{service} refuses the access key or its secret for bucket {bucket} ({why}); correct the credentials"
    if code == "AccessDenied":
        return f"{service} denies access to {url}; the credentials are wrong or lack this permission"
    if code in ("PreconditionFailed", "ConditionalRequestConflict") or status == 412:
        return f"{url} exists already, and nothing is ever overwritten"
    if code == "NoSuchKey" or (status == 404 and not code):
        return f"{url} does not exist at {service}"
    return f"{service} refuses {url}: {message[1] if message else 'no reason given'} ({code or f'HTTP {status}'})"


def _untrusted(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return reason.verify_message
    found = _CERTIFICATE.search(str(error))
    return found[1] if found else ""


def _cause(error: Exception) -> str:
    text = str(error)
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    for pattern in _CAUSES:
        if found := pattern.findall(text):
            return str(found[-1])
    if "kind: Timeout" in text or "TimedOut" in text:
        return "it does not answer in time"
    return text.partition("\n")[0]


def _text(error: Exception) -> str:
    """The error with the store's answer. An HTTPError can be read once, so the text is kept with it."""
    if not isinstance(error, urllib.error.HTTPError):
        return str(error)
    if not hasattr(error, "text"):
        error.text = error.read().decode(errors="replace")  # type: ignore[attr-defined]
    return str(getattr(error, "text"))  # noqa: B009
