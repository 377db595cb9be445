"""What etcd refuses, as exceptions, with the gRPC codes of its answers."""

from __future__ import annotations

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
_NOT_IN_SYNC = "etcdserver: can only promote a learner member which is in sync with leader"


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
