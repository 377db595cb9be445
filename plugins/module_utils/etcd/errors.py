"""What etcd refuses, as exceptions, with the gRPC codes of its answers."""

from __future__ import annotations

# The gRPC codes that matter here.
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
# Refusals with a final code that concern only the member that was asked.
_NOT_FOR_LEARNERS = "etcdserver: rpc not supported for learner"
_DENIED = "auth: permission denied"  # 3.5 sends it without a code when it streams
_OF_ONE_MEMBER = {_NOT_FOR_LEARNERS, "etcdserver: not leader", "etcdserver: not capable"}
# Refusals because auth is enabled and the sender has no user, or one without the permission.
NAMED_CERTIFICATE = (
    "with auth enabled, etcd's gateway refuses client certificates that have a common name; use one without"
)
_NOT_AUTHORIZED = {
    NAMED_CERTIFICATE,
    "etcdserver: user name is empty",
    "etcdserver: user name not found",
    "etcdserver: permission denied",
}
_NOT_IN_SYNC = "etcdserver: can only promote a learner member which is in sync with leader"


class EtcdError(Exception):
    """A refusal by etcd: the gRPC code and message of its answer, and the endpoint."""

    def __init__(self, code: int, message: str, endpoint: str = "") -> None:
        super().__init__(code, message, endpoint)
        self.code = code
        self.message = message
        self.endpoint = endpoint

    def __str__(self) -> str:
        return f"{self.endpoint}: {self.message}" if self.endpoint else self.message

    @property
    def final(self) -> bool:
        """Whether the other members would answer the same."""
        return (self.code in _FINAL_CODES and self.message not in _OF_ONE_MEMBER) or self.message == _DENIED

    @property
    def not_in_sync(self) -> bool:
        """Whether a learner is not in sync yet: the promotion may succeed later."""
        return self.message == _NOT_IN_SYNC

    @property
    def needs_auth(self) -> bool:
        """Whether auth is enabled and etcd refuses whoever asked: the member itself may be healthy."""
        return self.message in _NOT_AUTHORIZED

    @property
    def from_learner(self) -> bool:
        """Whether a learner refused, which serves almost no requests."""
        return self.message == _NOT_FOR_LEARNERS


class Unreachable(EtcdError):  # noqa: N818  a state, not a mistake
    """No trusted answer: the network, TLS, or a deadline."""

    def __init__(self, message: str, endpoint: str = "") -> None:
        super().__init__(UNAVAILABLE, message, endpoint)
        self.args = (message, endpoint)
