"""One request to many members: to all concurrently (`ask_all`), or to one after the other (`on_any`)."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from .errors import UNAVAILABLE, EtcdError, Unreachable

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


def ask_all(
    asked: Sequence[Asked], ask: Callable[[Asked], Answer], *, deadline: float = 5.0
) -> list[Answer | EtcdError]:
    """Ask all of them concurrently; the answers come in the same order.

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
        # Daemon threads: one that hangs, for example in a DNS lookup, must not keep the process from ending.
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
    """Send a request to one voter after the other until one accepts it.

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
