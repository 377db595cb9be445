"""A small etcd client: the JSON gateway over http.client, standard library only, quick to import.

It speaks with etcd 3.5, 3.6 and 3.7 alike. A Client asks one member; `ask_all` asks many side by side; `on_any` puts
one request to member after member until one takes it.
"""

from __future__ import annotations

import base64
import http.client
import json
import queue
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

# gRPC's codes, as far as they mean something here.
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
FAILED_PRECONDITION = 9
UNIMPLEMENTED = 12
UNAVAILABLE = 14
UNAUTHENTICATED = 16

_FINAL_CODES = {
    INVALID_ARGUMENT,
    NOT_FOUND,
    ALREADY_EXISTS,
    PERMISSION_DENIED,
    FAILED_PRECONDITION,
    UNIMPLEMENTED,
    UNAUTHENTICATED,
}
# They have a final code and yet are about the member that was asked.
_NOT_FOR_LEARNERS = "etcdserver: rpc not supported for learner"
_DENIED = "auth: permission denied"  # without a code that says so: 3.5, when it streams
_OF_ONE_MEMBER = {_NOT_FOR_LEARNERS, "etcdserver: not leader", "etcdserver: not capable"}
_STALE_TOKEN = {
    "etcdserver: invalid auth token",
    "etcdserver: revision of auth store is old",
    "etcdserver: user name is empty",  # auth was off when we logged in
}
_NOT_IN_SYNC = "etcdserver: can only promote a learner member which is in sync with leader"
_AUTH_IS_OFF = "etcdserver: authentication is not enabled"
_NAMED_CERTIFICATE = "CommonName of client sending a request against gateway"

# etcd then answers "no leader" at once, where it would otherwise wait for one until the timeout.
_NEEDS_LEADER = {"Grpc-Metadata-hasleader": "true"}
_DEFAULT_PORTS = {"http": 80, "https": 443}


class EtcdError(Exception):
    """etcd's refusal, with the gRPC code and message of its answer and the endpoint that gave it."""

    def __init__(self, code: int, message: str, endpoint: str = "") -> None:
        super().__init__(code, message, endpoint)
        self.code = code
        self.message = message
        self.endpoint = endpoint

    def __str__(self) -> str:
        return f"{self.endpoint}: {self.message}" if self.endpoint else self.message

    @property
    def final(self) -> bool:
        """Whether the other members would say the same."""
        return (self.code in _FINAL_CODES and self.message not in _OF_ONE_MEMBER) or self.message == _DENIED

    @property
    def not_in_sync(self) -> bool:
        """Whether a learner can't be promoted yet: worth another try in a moment."""
        return self.message == _NOT_IN_SYNC

    @property
    def from_learner(self) -> bool:
        """Whether it is a learner's, which serves next to nothing."""
        return self.message == _NOT_FOR_LEARNERS


class Unreachable(EtcdError):  # noqa: N818  it says what is, and is caught as such
    """Nobody who can be trusted answered: the network, TLS, or a deadline."""

    def __init__(self, message: str, endpoint: str = "") -> None:
        super().__init__(UNAVAILABLE, message, endpoint)
        self.args = (message, endpoint)


@dataclass(frozen=True)
class Endpoint:
    """Where a member is. The host in `url` is what its certificate must name; `address`, if given, is dialled."""

    url: str
    address: str | None = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in _DEFAULT_PORTS and parts.hostname and (parts.port is None or parts.port > 0)
        except ValueError:  # a port that is no number, half of an IPv6 address
            usable = False
        if not usable:
            example = "https://10.0.0.1:2379"
            raise EtcdError(INVALID_ARGUMENT, f"{self.url!r} is no endpoint; write it as a URL such as {example}")

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
    """PEM files: the CA to trust (the system's when None), our certificate and its key. Read once, at first use."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    @cached_property
    def context(self) -> ssl.SSLContext:
        # Not create_default_context: from Python 3.13 on that one is stricter about CAs than etcd itself.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.ca is None:
            context.load_default_certs()
        else:
            try:
                context.load_verify_locations(cafile=self.ca)
            except OSError as error:
                raise EtcdError(INVALID_ARGUMENT, f"the CA file {self.ca} is of no use: {_words(error)}") from error
        if self.cert is not None:
            try:
                # An empty password, or an encrypted key would have it ask on the terminal.
                context.load_cert_chain(self.cert, self.key, password="")
            except (OSError, ValueError) as error:
                what = f"the client certificate {self.cert} with the key {self.key or self.cert}"
                raise EtcdError(INVALID_ARGUMENT, f"{what} is of no use: {_words(error)}") from error
        return context


@dataclass(frozen=True)
class Member:
    """As in the member list. `name` and `client_urls` are empty until the member has started once."""

    id: int
    name: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    is_learner: bool


@dataclass(frozen=True)
class MemberList:
    cluster_id: int
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Status:
    """What one member says about itself. `leader_id` is 0 when it knows none; `storage_version` is empty in 3.5."""

    member_id: int
    cluster_id: int
    version: str
    storage_version: str
    leader_id: int
    raft_term: int
    raft_index: int
    raft_applied_index: int
    revision: int
    db_size: int
    db_size_in_use: int
    is_learner: bool
    errors: tuple[str, ...]
    downgrade: str = ""  # the version that a downgrade which is enabled goes to; not told by 3.5


@dataclass(frozen=True)
class Alarm:
    member_id: int
    alarm: str  # NOSPACE or CORRUPT


def ask_all(
    asked: Sequence[Asked], ask: Callable[[Asked], Answer], *, deadline: float = 5.0
) -> list[Answer | EtcdError]:
    """Ask each one (endpoints, clients, anything) side by side; the answers come in the same order.

    One that refuses, or is silent when `deadline` seconds are over, has its EtcdError in place of an answer. Any other
    exception is a mistake in `ask` and is raised.
    """
    done: queue.SimpleQueue[tuple[int, Answer | BaseException]] = queue.SimpleQueue()

    def work(number: int, one: Asked) -> None:
        try:
            done.put((number, ask(one)))
        except BaseException as error:  # the caller's thread raises it
            done.put((number, error))

    answers: list[Answer | EtcdError] = [Unreachable(f"no answer within {deadline:g} s", str(one)) for one in asked]
    ends = time.monotonic() + deadline
    for number, one in enumerate(asked):
        # Daemons: one that hangs, in a name server's hands for example, must not keep the process from ending.
        threading.Thread(target=work, args=(number, one), daemon=True).start()
    for _ in asked:
        try:
            number, answer = done.get(timeout=max(0.0, ends - time.monotonic()))
        except queue.Empty:
            break
        if isinstance(answer, BaseException) and not isinstance(answer, EtcdError):
            raise answer
        answers[number] = answer
    return answers


def on_any(clients: Iterable[Asked], call: Callable[[Asked], Answer]) -> Answer:
    """Put a request to one voter after the other until one takes it.

    "etcdserver: unhealthy cluster" may be one member's own view, so the others are asked too. A final refusal, or the
    last one, is raised. A change that timed out may still have been made: look at the member list before repeating it.
    """
    last: EtcdError = EtcdError(UNAVAILABLE, "there is no member to ask")
    for client in clients:
        try:
            return call(client)
        except EtcdError as error:
            if error.final:
                raise
            last = error
    raise last


class Client:
    """Talks with one member over one connection that is kept open. Not for two threads at once.

    `timeout` is for a whole request in seconds, and etcd is told of it. With `user` and `password` it logs in at the
    first request; a cluster whose auth is off is talked with all the same. The `token` it then has is good for the
    other members too: a learner takes no login, but it takes a token.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        tls: Tls | None = None,
        timeout: float = 2.0,
        user: str | None = None,
        password: str | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._tls = tls or Tls()
        self._timeout = timeout
        self._user = user
        self._password = password
        self.token: str | None = None
        self._connection: http.client.HTTPConnection | None = None

    def __str__(self) -> str:
        return str(self.endpoint)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- reading

    def members(self, linearizable: bool = True) -> MemberList:
        """The member list; not linearizable: as this member knows it, quorum or not. A learner refuses both."""
        headers = _NEEDS_LEADER if linearizable else None
        return _member_list(self.call("cluster/member/list", {"linearizable": linearizable}, headers=headers))

    def status(self) -> Status:
        """What this member says about itself, quorum or not."""
        return _status(self.call("maintenance/status", {}))

    def cluster_version(self) -> str:
        """The version that the members agree on, such as 3.6.0: that of the oldest. "" before they have."""
        version = str(self.call("version", {}, method="GET").get("etcdcluster", ""))
        return version if version[:1].isdigit() else ""

    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms of the cluster. It goes through raft (needs quorum, costs a log entry): `status().errors` tells,
        for nothing, whether there is any."""
        answer = self.call("maintenance/alarm", {"action": "GET"}, headers=_NEEDS_LEADER)
        return tuple(Alarm(int(one.get("memberID", 0)), one.get("alarm", "NONE")) for one in answer.get("alarms", []))

    def health(self) -> None:
        """A linearizable read through this member, or why there is none. A learner always refuses."""
        try:
            self.call("kv/range", {"key": _encoded("health")}, headers=_NEEDS_LEADER)
        except EtcdError as error:
            if error.code != PERMISSION_DENIED:  # that much was agreed upon by a quorum
                raise

    def get(self, key: str) -> bytes | None:
        found = self.call("kv/range", {"key": _encoded(key)}).get("kvs", [])
        return base64.b64decode(found[0].get("value", "")) if found else None

    # -- changing

    def put(self, key: str, value: str) -> None:
        self.call("kv/put", {"key": _encoded(key), "value": _encoded(value)})

    def member_add(self, peer_urls: Sequence[str], learner: bool) -> Member:
        """The new member, with its ID and without a name: that comes when it starts."""
        answer = self.call("cluster/member/add", {"peerURLs": list(peer_urls), "isLearner": learner})
        return _member(answer["member"])

    def member_promote(self, member_id: int) -> MemberList:
        """Make a learner a voter; the error's `not_in_sync` says that it must catch up first."""
        return _member_list(self.call("cluster/member/promote", {"ID": str(member_id)}))

    def member_remove(self, member_id: int) -> MemberList:
        return _member_list(self.call("cluster/member/remove", {"ID": str(member_id)}))

    def member_update(self, member_id: int, peer_urls: Sequence[str]) -> MemberList:
        return _member_list(self.call("cluster/member/update", {"ID": str(member_id), "peerURLs": list(peer_urls)}))

    def move_leader(self, target_id: int) -> None:
        """Hand leadership over. Only the leader takes this request."""
        self.call("maintenance/transfer-leadership", {"targetID": str(target_id)})

    def downgrade(self, action: Literal["VALIDATE", "ENABLE", "CANCEL"], version: str) -> None:
        """Have etcd get ready for an older minor version, such as 3.5.0, see whether it could, or call it off."""
        self.call("maintenance/downgrade", {"action": action, "version": version})

    def defragment(self, timeout: float = 60.0) -> None:
        """Defragment this member, which serves nobody meanwhile."""
        self.call("maintenance/defragment", {}, timeout=timeout)

    def alarm_disarm(self, alarm: Alarm) -> None:
        self.call(
            "maintenance/alarm",
            {"action": "DEACTIVATE", "memberID": str(alarm.member_id), "alarm": alarm.alarm},
        )

    # -- the wire

    def call(
        self,
        path: str,
        request: dict[str, Any],
        *,
        headers: dict[str, str] | None = None,
        timeout: float | None = None,
        method: Literal["POST", "GET"] = "POST",
    ) -> dict[str, Any]:
        """POST to /v3/`path` and return the answer as etcd gives it: 64-bit numbers are strings, zeros are left out.

        What is not part of the gateway is had by GET, and by anybody.
        """
        deadline = Deadline(timeout or self._timeout)
        if self._user is None or method == "GET":
            return self._post(path, request, headers or {}, deadline, method)
        fresh = self.token is None
        if fresh:
            self._log_in(deadline)
        try:
            return self._post(path, request, self._authorized(headers), deadline)
        except EtcdError as error:
            if fresh or error.message not in _STALE_TOKEN:
                raise
        self._log_in(deadline)  # tokens end: by age, when the member restarts, when users or roles change
        return self._post(path, request, self._authorized(headers), deadline)

    def _authorized(self, headers: dict[str, str] | None) -> dict[str, str]:
        return {**(headers or {}), **({"Authorization": self.token} if self.token else {})}

    def _log_in(self, deadline: Deadline) -> None:
        who = {"name": self._user, "password": self._password or ""}
        try:
            self.token = self._post("auth/authenticate", who, {}, deadline)["token"]
        except EtcdError as error:
            if error.message != _AUTH_IS_OFF:
                raise
            self.token = ""

    def _post(
        self,
        path: str,
        request: dict[str, Any],
        headers: dict[str, str],
        deadline: Deadline,
        method: Literal["POST", "GET"] = "POST",
    ) -> dict[str, Any]:
        try:
            connection = self._connected(deadline)
            left = deadline.left()
            # etcd gives up a little before we do: its answer says more than its silence.
            headers = {**headers, "Content-Type": "application/json", "Grpc-Timeout": f"{max(1, int(left * 950))}m"}
            connection.sock.settimeout(left)
            if method == "GET":
                connection.request(method, f"/{path}", None, headers)
            else:
                connection.request(method, f"/v3/{path}", json.dumps(request).encode(), headers)
            response = connection.getresponse()
            body = response.read()
        except (
            OSError,
            UnicodeError,
            http.client.HTTPException,
        ) as error:  # UnicodeError: a host name that can't be one
            reason = in_words(error, self.endpoint, self._tls, greeted=self._connection is not None)
            reason = f"no answer within {deadline.seconds:g} s" if isinstance(error, TimeoutError) else reason
            self.close()
            raise Unreachable(reason, str(self.endpoint)) from error
        except BaseException:
            self.close()  # nobody can go on with half a conversation
            raise
        if response.will_close:
            self.close()
        return _answer(response.status, body, str(self.endpoint))

    def _connected(self, deadline: Deadline) -> http.client.HTTPConnection:
        if self._connection is not None:
            if not _readable(self._connection.sock):
                return self._connection
            self.close()  # something to read where nothing was asked: the member has hung up
        endpoint = self.endpoint
        dialled = dial(endpoint, self._tls, deadline)
        self._connection = http.client.HTTPConnection(endpoint.host, endpoint.port)
        self._connection.sock = dialled
        return self._connection


def _readable(connected: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return bool(poll.poll(0))


class Deadline:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends = time.monotonic() + seconds

    def left(self) -> float:
        """The seconds that are left; never 0, which a socket takes for something else."""
        return max(0.001, self._ends - time.monotonic())


def dial(endpoint: Endpoint, tls: Tls, deadline: Deadline) -> socket.socket:
    """A connection to a member."""
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
    """What went wrong on the wire, and what to look at; `greeted`: there was a connection."""
    match error:
        case ConnectionRefusedError():
            reason = "connection refused: nothing listens there"
        case socket.gaierror() | UnicodeError():
            reason = f"the host name does not resolve ({_words(error)})"
        case ssl.SSLCertVerificationError():
            reason = f"its certificate is not trusted: {error.verify_message}"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "HTTP_REQUEST"):
            reason = "it does not speak TLS; is the URL meant to begin with http://?"
        case ssl.SSLError(reason=str(alert)) if "ALERT" in alert:
            reason = f"it refused our client certificate, or the lack of one ({_words(error)})"
        case ConnectionError() | ssl.SSLError() | http.client.HTTPException():
            reason = f"it closed the connection without an answer{_hint(endpoint, tls, greeted)}"
        case _:
            reason = _words(error)
    return reason


def _hint(endpoint: Endpoint, tls: Tls, greeted: bool) -> str:
    if not endpoint.secure:
        return "; is the URL meant to begin with https://?"
    if not greeted:  # not even the handshake ended well
        return "; does it speak TLS, or is the URL meant to begin with http://?"
    return "" if tls.cert else "; does it want a client certificate?"


def _answer(status: int, body: bytes, endpoint: str) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        text = body[:200].decode(errors="replace").strip()
        if text.startswith(_NAMED_CERTIFICATE):
            message = (
                "with auth on, etcd's gateway refuses client certificates that have a common name; use one without"
            )
            raise EtcdError(INVALID_ARGUMENT, message, endpoint)
        hint = "is this a client URL of etcd, with its gRPC gateway enabled?"
        raise EtcdError(UNKNOWN, f"answered HTTP {status} ({text}); {hint}", endpoint)
    if status == 200:
        return answer
    code = answer.get("code", UNKNOWN)
    message = answer.get("message") or answer.get("error") or f"answered HTTP {status}"
    if code == DEADLINE_EXCEEDED:
        message = "the member answers, but the cluster did not agree in time; does it have quorum?"
    raise EtcdError(code, message, endpoint)


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _member(answer: dict[str, Any]) -> Member:
    return Member(
        id=int(answer.get("ID", 0)),
        name=answer.get("name", ""),
        peer_urls=tuple(answer.get("peerURLs", [])),
        client_urls=tuple(answer.get("clientURLs", [])),
        is_learner=answer.get("isLearner", False),
    )


def _member_list(answer: dict[str, Any]) -> MemberList:
    members = tuple(_member(member) for member in answer.get("members", []))
    return MemberList(int(answer["header"].get("cluster_id", 0)), members)


def _status(answer: dict[str, Any]) -> Status:
    header, downgrade = answer["header"], answer.get("downgradeInfo", {})

    def number(name: str) -> int:
        return int(answer.get(name, 0))

    return Status(
        member_id=int(header.get("member_id", 0)),
        cluster_id=int(header.get("cluster_id", 0)),
        version=answer.get("version", ""),
        storage_version=answer.get("storageVersion", ""),
        leader_id=number("leader"),
        raft_term=number("raftTerm"),
        raft_index=number("raftIndex"),
        raft_applied_index=number("raftAppliedIndex"),
        revision=int(header.get("revision", 0)),
        db_size=number("dbSize"),
        db_size_in_use=number("dbSizeInUse"),
        is_learner=answer.get("isLearner", False),
        errors=tuple(answer.get("errors", [])),
        downgrade=downgrade.get("targetVersion", "") if downgrade.get("enabled") else "",
    )
