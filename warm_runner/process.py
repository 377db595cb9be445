"""Makes a fork behave like a fresh Python: streams, signals, exit. Also runs scripts inside this process."""

from __future__ import annotations

import atexit
import builtins
import functools
import io
import locale
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, ModuleType
from typing import Any, NoReturn

_STREAMS = ("stdin", "stdout", "stderr")


def default_signals(ignored: list[int] | None = None) -> None:
    """Handlers as in a fresh Python whose parent ignored these signals; by default, those ignored now."""
    if ignored is None:
        ignored = [number for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN]
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}:
        if number in ignored:
            signal.signal(number, signal.SIG_IGN)
        elif number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)
        elif signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def open_streams() -> None:
    """Open stdin, stdout and stderr again: the old ones assume the kind of files of the server's start."""
    for fd, name in enumerate(_STREAMS):
        before = getattr(sys, f"__{name}__")
        mode = "w" if fd else "r"
        buffer: Any = open(fd, f"{mode}b", closefd=False)  # noqa: SIM115
        buffer.raw.name = f"<{name}>"
        lines = fd == 2 or (fd == 1 and os.isatty(fd))
        stream: Any = io.TextIOWrapper(buffer, before.encoding, before.errors, "\n", lines)
        stream.mode = mode
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def run(code: CodeType, path: str, package: str | None = None, must_exit: str = "") -> NoReturn:
    """Run a script and end the process as Python would, but without finalizing the interpreter.

    `must_exit` is printed when the script returns without having called exit, if that is an error.
    """
    status, interrupted = _script(code, path, package, must_exit)
    threading._shutdown()  # type: ignore[attr-defined]
    status = _finished(status, atexit._run_exitfuncs)
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def run_here(code: CodeType, path: str, package: str, must_exit: str = "") -> tuple[int, bytes, bytes]:
    """Run a script in this process, which continues: exit code, output and error output."""
    streams = [os.open("/dev/null", os.O_RDONLY), os.memfd_create("stdout"), os.memfd_create("stderr")]
    try:
        with _in_place(streams), _exit_handlers() as at_exit:
            open_streams()
            status, interrupted = _script(code, path, package, must_exit)
            status = _finished(status, at_exit)
        if interrupted:  # the signal was for this process
            raise KeyboardInterrupt
        return status, _content(streams[1]), _content(streams[2])
    finally:
        for fd in streams:
            os.close(fd)


def start_as_script(path: str, environment: dict[str, str], cwd: str) -> None:
    """Set what a script started by a shell finds, where Ansible has set something else."""
    locale.setlocale(locale.LC_ALL, "C")
    locale.setlocale(locale.LC_CTYPE, "")
    os.environ.update({"PWD": cwd} | environment)  # a shell sets PWD
    os.chdir(cwd)
    sys.path = sys.path[1:]  # the script's folder
    sys.argv = [path]


@contextmanager
def state_restored() -> Iterator[None]:
    """Restore afterwards what a script may change in this process."""
    environment, cwd, culture = dict(os.environ), os.getcwd(), locale.setlocale(locale.LC_ALL)
    names = ("argv", "path", *_STREAMS, *(f"__{name}__" for name in _STREAMS))
    main, values = sys.modules["__main__"], {name: getattr(sys, name) for name in names}
    try:
        yield
    finally:
        for name, value in values.items():
            setattr(sys, name, value)
        sys.modules["__main__"] = main
        locale.setlocale(locale.LC_ALL, culture)
        os.chdir(cwd)
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)


@contextmanager
def _exit_handlers() -> Iterator[Callable[[], None]]:
    """Keep the exit handlers of a script separate from those of this process; yields a function that runs them."""
    finalize: Any = weakref.finalize
    register, registry, registered = atexit.register, finalize._registry, finalize._registered_with_atexit
    handlers: list[Callable[[], object]] = []

    def register_here(handler: Any, *arguments: Any, **keywords: Any) -> Any:
        handlers.append(functools.partial(handler, *arguments, **keywords))
        return handler

    def run() -> None:
        while handlers:
            try:
                handlers.pop()()
            except BaseException as error:
                sys.excepthook(type(error), error, error.__traceback__)

    finalize._registry, finalize._registered_with_atexit = {}, False
    atexit.register = register_here  # type: ignore[assignment]
    try:
        yield run
    finally:
        atexit.register = register
        finalize._registry, finalize._registered_with_atexit = registry, registered


@contextmanager
def _in_place(streams: list[int]) -> Iterator[None]:
    """Use these descriptors as the standard streams for a while."""
    kept = [os.dup(fd) for fd in range(len(streams))]
    try:
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
        yield
    finally:
        for number, fd in enumerate(kept):
            os.dup2(fd, number)
            os.close(fd)


def _script(code: CodeType, path: str, package: str | None, must_exit: str) -> tuple[int, bool]:
    """Its exit code, and whether it was interrupted."""
    main = ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __file__=path, __package__=package)
    sys.modules["__main__"] = main
    status: object = None
    interrupted = False
    try:
        exec(code, main.__dict__)  # noqa: S102
        if must_exit:
            print(must_exit)
            status = 1
    except SystemExit as end:
        status = end.code
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        status, interrupted = 1, isinstance(error, KeyboardInterrupt)
    if status is not None and not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    return (status or 0) & 0xFF, interrupted


def _finished(status: int, at_exit: Callable[[], None]) -> int:
    """The exit code after the exit handlers ran and the output was flushed."""
    at_exit()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            status = status or 120
    return status


def _content(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    with open(fd, "rb", closefd=False) as file:
        return file.read()
