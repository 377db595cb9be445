"""A small etcd client: the JSON gateway over http.client, standard library only, quick to import.

It works with etcd 3.5, 3.6 and 3.7. A Client talks to one member.
"""

from __future__ import annotations

import base64
import http.client
import json
import select
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from .endpoint import Deadline, Endpoint, Tls, dial, in_words
from .errors import DEADLINE_EXCEEDED, INVALID_ARGUMENT, NAMED_CERTIFICATE, UNKNOWN, EtcdError, Unreachable
from .types import Alarm, Member, MemberList, Status, parse_member, parse_member_list, parse_status
from .wire import TooLarge, Wire

Parsed = TypeVar("Parsed")

_STALE_TOKEN = {
    "etcdserver: invalid auth token",
    "etcdserver: revision of auth store is old",
    "etcdserver: user name is empty",  # auth was off when we logged in
}
_AUTH_IS_OFF = "etcdserver: authentication is not enabled"
_NAMED_CERTIFICATE = "CommonName of client sending a request against gateway"

# With this header etcd answers "no leader" at once instead of waiting until the timeout.
_NEEDS_LEADER = {"Grpc-Metadata-hasleader": "true"}


class Client:
    """Talks to one member over one connection that stays open. Not thread-safe.

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
        self._wire: Wire | None = None

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
        """The member list; not linearizable: as this member knows it, without quorum. A learner refuses both."""
        headers = _NEEDS_LEADER if linearizable else None
        return self._parsed(
            parse_member_list, self.call("cluster/member/list", {"linearizable": linearizable}, headers=headers)
        )

    def status(self) -> Status:
        """What this member reports of itself; needs no quorum."""
        return self._parsed(parse_status, self.call("maintenance/status", {}))

    def cluster_version(self) -> str:
        """The cluster version, such as 3.6.0: the lowest that a member runs. "" before the members agreed on one."""
        version = str(self.call("version", {}, method="GET").get("etcdcluster", ""))
        return version if version[:1].isdigit() else ""

    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms of the cluster. The request goes through raft: it needs quorum and costs a log entry. Whether
        there are any is in `status().errors` at no cost."""
        answer = self.call("maintenance/alarm", {"action": "GET"}, headers=_NEEDS_LEADER)
        return tuple(Alarm(int(one.get("memberID", 0)), one.get("alarm", "NONE")) for one in answer.get("alarms", []))

    def health(self) -> bool:
        """A linearizable read through this member; EtcdError when it fails. A learner always refuses.

        False when it succeeded, but auth does not permit the result: etcd checks that after a quorum agreed.
        """
        try:
            self.call("kv/range", {"key": _encoded("health")}, headers=_NEEDS_LEADER)
        except EtcdError as error:
            if not error.needs_auth or error.message == NAMED_CERTIFICATE:
                raise
            return False
        return True

    def get(self, key: str) -> bytes | None:
        found = self.call("kv/range", {"key": _encoded(key)}).get("kvs", [])
        return base64.b64decode(found[0].get("value", "")) if found else None

    # -- changing

    def put(self, key: str, value: str) -> None:
        self.call("kv/put", {"key": _encoded(key), "value": _encoded(value)})

    def member_add(self, peer_urls: Sequence[str], learner: bool) -> Member:
        """Add a member; it has an ID, and gets its name when it starts."""
        answer = self.call("cluster/member/add", {"peerURLs": list(peer_urls), "isLearner": learner})
        return self._parsed(lambda answer: parse_member(answer["member"]), answer)

    def member_promote(self, member_id: int) -> MemberList:
        """Make a learner a voter; the error's `not_in_sync` tells that it must catch up first."""
        return self._parsed(parse_member_list, self.call("cluster/member/promote", {"ID": str(member_id)}))

    def member_remove(self, member_id: int) -> MemberList:
        return self._parsed(parse_member_list, self.call("cluster/member/remove", {"ID": str(member_id)}))

    def member_update(self, member_id: int, peer_urls: Sequence[str]) -> MemberList:
        answer = self.call("cluster/member/update", {"ID": str(member_id), "peerURLs": list(peer_urls)})
        return self._parsed(parse_member_list, answer)

    def move_leader(self, target_id: int) -> None:
        """Move leadership. Only the leader accepts this request."""
        self.call("maintenance/transfer-leadership", {"targetID": str(target_id)})

    def downgrade(self, action: Literal["VALIDATE", "ENABLE", "CANCEL"], version: str) -> None:
        """Enable a downgrade to an older minor version such as 3.5.0, check whether it is possible, or cancel it."""
        self.call("maintenance/downgrade", {"action": action, "version": version})

    def defragment(self, timeout: float = 60.0) -> None:
        """Defragment this member, which blocks its requests meanwhile."""
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
        self._log_in(deadline)  # a token expires with age, when the member restarts, and when users or roles change
        return self._post(path, request, self._authorized(headers), deadline)

    def _parsed(self, parse: Callable[[dict[str, Any]], Parsed], answer: dict[str, Any]) -> Parsed:
        try:
            return parse(answer)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise EtcdError(
                UNKNOWN, "its answer is not that of etcd; is this a client URL of etcd?", str(self)
            ) from error

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
            # etcd's deadline is a little shorter than ours: its answer says more than a timeout.
            headers = {**headers, "Content-Type": "application/json", "Grpc-Timeout": f"{max(1, int(left * 950))}m"}
            if method == "GET":
                connection.request(method, f"/{path}", None, headers)
            else:
                connection.request(method, f"/v3/{path}", json.dumps(request).encode(), headers)
            response = connection.getresponse()
            body = response.read()
        except TooLarge as error:
            self.close()
            raise EtcdError(UNKNOWN, str(error), str(self.endpoint)) from error
        except (
            OSError,
            UnicodeError,
            http.client.HTTPException,
        ) as error:  # UnicodeError: an invalid host name
            reason = in_words(error, self.endpoint, self._tls, greeted=self._connection is not None)
            reason = f"no answer within {deadline.seconds:g} s" if isinstance(error, TimeoutError) else reason
            self.close()
            raise Unreachable(reason, str(self.endpoint)) from error
        except BaseException:
            self.close()  # the connection is in an unknown state
            raise
        if response.will_close:
            self.close()
        return _answer(response.status, body, str(self.endpoint))

    def _connected(self, deadline: Deadline) -> http.client.HTTPConnection:
        if self._connection is not None and self._wire is not None:
            if not _readable(self._wire):
                self._wire.begin(deadline)
                return self._connection
            self.close()  # readable without a request: the member has closed it
        endpoint = self.endpoint
        self._wire = Wire(dial(endpoint, self._tls, deadline), deadline)
        self._connection = http.client.HTTPConnection(endpoint.host, endpoint.port)
        self._connection.sock = self._wire
        return self._connection


def _readable(connected: Wire) -> bool:
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return bool(poll.poll(0))


def _answer(status: int, body: bytes, endpoint: str) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        text = body[:200].decode(errors="replace").strip()
        if text.startswith(_NAMED_CERTIFICATE):
            raise EtcdError(INVALID_ARGUMENT, NAMED_CERTIFICATE, endpoint)
        hint = "is this a client URL of etcd, with its gRPC gateway enabled?"
        raise EtcdError(UNKNOWN, f"answered HTTP {status} ({text}); {hint}", endpoint)
    if status == 200:
        return answer
    code = answer.get("code", UNKNOWN)
    message = answer.get("message") or answer.get("error") or f"answered HTTP {status}"
    if code == DEADLINE_EXCEEDED:
        message = "the member answers, but the request timed out in the cluster; does it have quorum?"
    raise EtcdError(code, message, endpoint)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
