"""Shorter ways to the same end: what the programs do again and again, or wait for, though a warm process need not."""

from __future__ import annotations

import copy
import functools
import http.client
import json
import os
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

from . import client, process

_BIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")
_DEAD_WORKER_SECONDS = 0.05  # between two looks whether a worker has died without a word


def close_terminals_at_once(pty_process: Any) -> None:
    """ptyprocess waits 0.1 s, for the kernel to notice an end that we have already seen."""
    stock_close = pty_process.close

    def close(self: Any, force: bool = True) -> None:
        if not self.closed and not self.isalive():
            self.delayafterclose = 0
        stock_close(self, force)

    pty_process.close = close


def remember_versions(metadata: Any) -> None:
    """ansible-runner asks for its own version in each run: a whole description of a package is parsed for that."""
    metadata.version = functools.cache(metadata.version)


def remember_translations(gettext: Any) -> None:
    """Both programs look, in each run and for each word of their help, for a file with translations."""
    stock_find = gettext.find

    @functools.cache
    def known(domain: Any, folder: Any, *_environment: str | None) -> tuple[str, ...]:
        return tuple(stock_find(domain, folder, None, True))

    def find(domain: Any, localedir: Any = None, languages: Any = None, all: Any = False) -> Any:  # noqa: A002
        if languages is None and all:
            return list(known(domain, localedir, *map(os.environ.get, ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"))))
        return stock_find(domain, localedir, languages, all)

    gettext.find = find


def be_the_client() -> None:
    """Where this process would become our client on PATH, which starts a Python for that, it is the client itself."""
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


connections: dict[str, _UnixConnection] = {}  # of this run


def send_events_over_one_connection(events: Any) -> None:
    """ansible-operator's plugin `http` makes a session of the library requests for each event."""
    stock_send = events.send_request

    def send(url: str, data: Any, headers: Any = None, urlpath: str | None = None) -> Any:
        if not os.path.exists(url):
            return stock_send(url, data, headers or {}, urlpath)
        connection = connections.setdefault(url, _UnixConnection(url))
        if connection.sock and select.select([connection.sock], [], [], 0)[0]:
            connection.close()  # something to read where nothing was asked: the operator has hung up
        body = json.dumps(data, allow_nan=False).encode()
        try:
            connection.request("POST", urlpath or "/", body, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            answer.read()
        except http.client.HTTPException as error:
            raise OSError(f"{url}: {error!r}") from error
        return answer

    events.send_request = send


def wait_for_results(strategy_base: Any, error: Callable[[str], Exception]) -> None:
    """Ansible looks for a task's result a thousand times a second; here the thread that has it says so."""

    class Results(deque[Any]):
        def __init__(self, arrived: Any) -> None:
            super().__init__()
            self._arrived = arrived

        def append(self, result: Any) -> None:  # by a thread that holds the lock
            super().append(result)
            self._arrived.notify()

    def wait(self: Any, iterator: Any) -> list[Any]:
        if not isinstance(self._results, Results):
            with self._results_lock:
                results, self._results = self._results, Results(self._results_lock)
                self._results.extend(results)
        processed: list[Any] = []
        look_at = 0.0
        while self._pending_results > 0 and not self._tqm._terminated:
            if time.monotonic() >= look_at:
                if self._tqm.has_dead_workers():
                    raise error("A worker was found in a dead state")
                look_at = time.monotonic() + _DEAD_WORKER_SECONDS
            with self._results_lock:
                if not self._results:
                    self._results_lock.wait(_DEAD_WORKER_SECONDS)
            processed.extend(self._process_pending_results(iterator))
        return processed

    strategy_base._wait_on_pending_results = wait


def trusted() -> list[str]:
    """Action plugins, by the names that tasks have for them, and packages of modules: none needs its own process."""
    return list(filter(None, os.environ.get("WARM_RUNNER_TRUSTED", "").split(",")))


def run_trusted_actions_here(worker_process: Any, task_executor: Any) -> None:
    """A worker is a fork: most of what it costs is the memory that it copies. The play takes simple tasks on itself."""
    stock_start = worker_process.start

    def start(self: Any) -> None:
        task = self._task
        asks_for_more = task.loop or task.until or task.delegate_to or task.async_val or task.timeout
        if task.action not in trusted() or asks_for_more or os.environ.get("WARM_RUNNER") == "off":
            stock_start(self)
            return
        own = task.copy()  # a fork has copies of all of it
        try:
            host, variables = copy.copy(self._host), self._task_vars.copy()
            context, loader, plugins = self._play_context, self._loader, self._shared_loader_obj
            executor = task_executor(
                host, own, variables, context, None, loader, plugins, self._final_q, self._variable_manager
            )
            result, fields = executor.run(), own.dump_attrs()
        except Exception:  # what is wrong is said by the usual way
            stock_start(self)
            return
        self._final_q.send_task_result(self._host.name, task._uuid, result, task_fields=fields)

    worker_process.start = start
