"""A forked process that passes for a fresh Python: its streams, its signals and its end."""

from __future__ import annotations

import atexit
import builtins
import io
import os
import signal
import sys
import threading
from types import CodeType, ModuleType
from typing import Any, NoReturn


def default_signals(ignored: list[int] | None = None) -> None:
    """As a Python that was just started has them, by a process that ignored these; by default, those ignored now."""
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
    """stdin, stdout and stderr anew: the old ones know what kind of files they had at the start."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
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
    """Run a script as Python would, and end the process as Python would, but without taking the interpreter down.

    `must_exit` is what to print when the script ends without having called exit, if that is an error.
    """
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
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            status = status or 120
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit((status or 0) & 0xFF)
