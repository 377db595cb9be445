"""Patches of foreign code that make a run shorter. Each gains at least 5 ms per reconcile (docs/warm-runner.md)."""

from __future__ import annotations

import copy
import http.client
import json
import os
import select
import socket
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from . import client, process

_BIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")


def take(shortcut: Callable[..., None], *arguments: Any) -> None:
    """Apply a shortcut, unless WARM_RUNNER_SKIP names it: benchmarks.shortcuts measures its gain that way."""
    if shortcut.__name__ not in client.names("SKIP"):
        shortcut(*arguments)


def close_terminals_at_once(pty_process: Any) -> None:
    """ptyprocess sleeps 0.1 s for the kernel to notice an end that we have already seen."""
    stock_close = pty_process.close

    def close(self: Any, force: bool = True) -> None:
        if not self.closed and not self.isalive():
            self.delayafterclose = 0
        stock_close(self, force)

    pty_process.close = close


def be_the_client() -> None:
    """Where ansible-runner's fork would execute our client, in a new Python, it calls the client's code instead."""
    stock_execvpe = os.execvpe

    def execvpe(file: Any, args: Any, env: Any) -> NoReturn:
        if os.path.realpath(os.path.dirname(os.fsdecode(file))) == _BIN:
            _become_client([os.fsdecode(word) for word in args], env)
        stock_execvpe(file, args, env)

    os.execvpe = execvpe


def _become_client(argv: list[str], environ: dict[str, str]) -> NoReturn:
    try:
        os.closerange(3, 65536)
        process.default_signals()
        os.environ.clear()
        os.environ.update(environ)
        sys.argv = argv
        client.main(_BIN)
    except SystemExit as end:
        os.write(2, f"{end.code}\n".encode())
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(1)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


connections: dict[str, _UnixConnection] = {}  # by path of the socket


def send_events_over_one_connection(events: Any) -> None:
    """ansible-operator's plugin `http` opens a session of the library requests for each event."""
    stock_send = events.send_request

    def send(url: str, data: Any, headers: Any = None, urlpath: str | None = None) -> Any:
        if not os.path.exists(url):
            return stock_send(url, data, headers or {}, urlpath)
        connection = connections.setdefault(url, _UnixConnection(url))
        if connection.sock and select.select([connection.sock], [], [], 0)[0]:
            connection.close()  # readable before a request: the operator closed it
        body = json.dumps(data, allow_nan=False).encode()
        try:
            connection.request("POST", urlpath or "/", body, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            answer.read()
        except http.client.HTTPException as error:
            raise OSError(f"{url}: {error!r}") from error
        return answer

    events.send_request = send


def trusts(action: str) -> bool:
    """Whether WARM_RUNNER_TRUSTED names this action or the package of its module."""
    package = f"ansible_collections.{action.rpartition('.')[0]}.plugins.modules"
    return not {action, package}.isdisjoint(client.names("TRUSTED"))


def run_trusted_actions_here(worker_process: Any, task_executor: Any) -> None:
    """Run trusted tasks in the play instead of in a worker: most of the cost of a fork is the memory that it copies."""
    stock_start = worker_process.start

    def start(self: Any) -> None:
        task = self._task
        needs_worker = task.loop or task.until or task.delegate_to or task.async_val or task.timeout
        if not trusts(task.action) or needs_worker or os.environ.get("WARM_RUNNER") == "off":
            stock_start(self)
            return
        own = task.copy()  # a worker would have copies of all of these
        try:
            host, variables = copy.copy(self._host), self._task_vars.copy()
            context, loader, plugins = self._play_context, self._loader, self._shared_loader_obj
            executor = task_executor(
                host, own, variables, context, None, loader, plugins, self._final_q, self._variable_manager
            )
            result, fields = executor.run(), own.dump_attrs()
        except Exception:  # a worker reports the error in the usual way
            stock_start(self)
            return
        self._final_q.send_task_result(self._host.name, task._uuid, result, task_fields=fields)

    worker_process.start = start
