"""How a member is reached: its endpoint, TLS files, a deadline, and what a failed connection means."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from .errors import INVALID_ARGUMENT, EtcdError

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Endpoint:
    """A member's client URL. Its certificate must name the host in `url`; `address`, if given, is dialled instead."""

    url: str
    address: str | None = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in _DEFAULT_PORTS and parts.hostname and (parts.port is None or parts.port > 0)
        except ValueError:  # a port that is not a number, half of an IPv6 address
            usable = False
        if not usable:
            example = "https://10.0.0.1:2379"
            raise EtcdError(INVALID_ARGUMENT, f"{self.url!r} is not an endpoint; use a URL such as {example}")

    def __str__(self) -> str:
        return self.url

    @property
    def secure(self) -> bool:
        return urlsplit(self.url).scheme == "https"

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        parts = urlsplit(self.url)
        return parts.port or _DEFAULT_PORTS[parts.scheme]


@dataclass(frozen=True)
class Tls:
    """PEM files: the trusted CA (the system's when None), the client certificate and its key. Read at first use."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    @cached_property
    def context(self) -> ssl.SSLContext:
        # Not create_default_context: from Python 3.13 on it is stricter about CAs than etcd.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.ca is None:
            context.load_default_certs()
        else:
            try:
                context.load_verify_locations(cafile=self.ca)
            except OSError as error:
                raise EtcdError(INVALID_ARGUMENT, f"the CA file {self.ca} can't be used: {_words(error)}") from error
        if self.cert is not None:
            try:
                # With an empty password, an encrypted key does not cause a prompt on the terminal.
                context.load_cert_chain(self.cert, self.key, password="")
            except (OSError, ValueError) as error:
                what = f"the client certificate {self.cert} with the key {self.key or self.cert}"
                raise EtcdError(INVALID_ARGUMENT, f"{what} can't be used: {_words(error)}") from error
        return context


class Deadline:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends = time.monotonic() + seconds

    def left(self) -> float:
        """The seconds that are left; never 0, which means non-blocking to a socket."""
        return max(0.001, self._ends - time.monotonic())

    @property
    def over(self) -> bool:
        return time.monotonic() >= self._ends


def dial(endpoint: Endpoint, tls: Tls, deadline: Deadline) -> socket.socket:
    """Open a connection to a member."""
    where = (endpoint.address or endpoint.host, endpoint.port)
    dialled = socket.create_connection(where, timeout=deadline.left())
    try:
        dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if endpoint.secure:
            dialled.settimeout(deadline.left())
            dialled = tls.context.wrap_socket(dialled, server_hostname=endpoint.host)
    except BaseException:
        dialled.close()
        raise
    return dialled


def in_words(error: Exception, endpoint: Endpoint, tls: Tls, greeted: bool) -> str:
    """Describe a failed connection and what to check; `greeted`: the handshake had succeeded."""
    match error:
        case ConnectionRefusedError():
            reason = "connection refused"
        case socket.gaierror() | UnicodeError():
            reason = f"the host name does not resolve ({_words(error)})"
        case ssl.SSLCertVerificationError():
            reason = f"its certificate is not trusted: {error.verify_message}"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "HTTP_REQUEST"):
            reason = "the server does not use TLS; should the URL begin with http://?"
        case ssl.SSLError(reason=str(alert)) if "ALERT" in alert:
            reason = f"the server refused the client certificate, or requires one ({_words(error)})"
        case ConnectionError() | ssl.SSLError() | http.client.HTTPException():
            reason = f"the server closed the connection without an answer{_hint(endpoint, tls, greeted)}"
        case _:
            reason = _words(error)
    return reason


def _hint(endpoint: Endpoint, tls: Tls, greeted: bool) -> str:
    if not endpoint.secure:
        return "; should the URL begin with https://?"
    if not greeted:  # the TLS handshake failed
        return "; does it use TLS, or should the URL begin with http://?"
    return "" if tls.cert else "; does it require a client certificate?"


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
