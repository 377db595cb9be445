"""The resident process: accepts commands, forks for each, and reports how it ended.

It is single-threaded and runs no Ansible code itself once it serves: what a run does stays in its fork.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import selectors
import signal
import socket
import struct
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NoReturn

from . import client, folders, process
from .programs import PROGRAMS

_TICK = 30.0  # seconds between two checks of its own state
_BLOCKED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_PR_SET_PDEATHSIG = 1
_TOO_LONG = b"warm runner: the run took longer than WARM_RUNNER_LIMIT (seconds) allows and was killed\n"


@dataclass(frozen=True)
class Request:
    """A command, and the process state in which to run it."""

    umask: int
    seconds: int
    terminal: int
    ignored: list[int]
    cwd: bytes
    argv: list[bytes]
    environ: dict[bytes, bytes]


@dataclass
class Run:
    """A command that is running."""

    pid: int
    pidfd: int
    connection: socket.socket
    deadline: float
    verdict: bytes = b""


def main() -> None:
    """Serve until idle or replaced. Arguments: the program's name, its path, the socket's path."""
    program, real, path = sys.argv[1:]
    command = [sys.executable, os.path.dirname(os.path.abspath(__file__)), program, real]
    environ, cwd = dict(os.environ), os.getcwd()
    # As Python sets it for the script itself.
    sys.path[0] = os.path.dirname(real)
    with open(real, "rb") as file:
        code = compile(file.read(), real, "exec")
    PROGRAMS[program].preload()
    os.chdir("/")
    if dict(os.environ) != environ:
        sys.exit("preloading changed the environment")
    if len(os.listdir("/proc/self/task")) > 1:
        sys.exit(f"preloading left threads behind: {threading.enumerate()}")

    def successor() -> None:
        with suppress(OSError):
            os.chdir(cwd)
        client.start(os.path.dirname(path), os.path.basename(path), command)
        os.chdir("/")

    def run(request: Request) -> NoReturn:
        sys.argv = [os.fsdecode(word) for word in request.argv]
        PROGRAMS[program].reset()
        process.run(code, real)

    pattern = os.environ.get("WARM_RUNNER_FOLDERS")

    def tidy() -> None:
        if pattern and program == "ansible-runner":
            folders.remove_idle(pattern, client.limit("KEEP", 200), f"{os.path.dirname(path)}/removed")

    gc.collect()
    gc.freeze()  # a collection in a fork would write to shared memory, and so copy it
    gc.set_threshold(50_000)  # a run is short, and most of its objects live until its end
    Server(path, run, successor, tidy).serve()


class Server:
    """`run` is called in the fork; `successor` starts the next server, which takes the socket's place.

    `tidy` is called in a fork from time to time, while there are runs.
    """

    def __init__(
        self,
        path: str,
        run: Callable[[Request], NoReturn],
        successor: Callable[[], None],
        tidy: Callable[[], None],
    ) -> None:
        self._path, self._run, self._successor, self._tidy = path, run, successor, tidy
        self._tidied_at = time.monotonic()
        self._pid = os.getpid()
        self._runs: dict[int, Run] = {}  # by pidfd
        self._waiting: set[socket.socket] = set()
        self._selector = selectors.PollSelector()  # unlike epoll, it has no descriptor that forks would share
        self._forks, self._memory = 0, _resident()
        self._busy_at = time.monotonic()
        self._renew_at = 0.0
        self._libc = ctypes.CDLL(None)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mine = f"{path}.{self._pid}"
        self._listener.bind(mine)
        self._listener.listen(128)
        self._inode = os.stat(mine).st_ino
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        os.utime(client.LOCK_FD, (0, 0))  # the start has succeeded, whatever happens next
        os.rename(mine, path)
        os.close(client.LOCK_FD)

    def serve(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        try:
            while self._tick():
                for ready, _ in self._selector.select(self._seconds_to_wait()):
                    try:
                        ready.data(ready.fileobj)
                    except Exception:  # a failure of one command must not end the others
                        traceback.print_exc()
                        time.sleep(0.1)
        finally:
            if os.getpid() == self._pid:
                for run in self._runs.values():
                    _kill_tree(run.pid)
                if self._in_place():
                    os.unlink(self._path)

    def _tick(self) -> bool:
        """Enforce the limits; False when there is nothing left to do."""
        now = time.monotonic()
        for run in self._runs.values():
            if now >= run.deadline and not run.verdict:
                run.verdict = b"%d %s" % (124 << 8, _TOO_LONG)
                _kill_tree(run.pid)
        if self._listener.fileno() >= 0:
            idle = not self._runs and not self._waiting and now >= self._idle_at()
            if idle or not self._in_place():
                self._selector.unregister(self._listener)
                self._listener.close()
            elif self._needs_successor() and now >= self._renew_at:
                self._renew_at = now + 60
                self._successor()
            if self._busy_at > self._tidied_at and now >= self._tidied_at + client.limit("TIDY", 60):
                self._tidied_at = now
                self._start_tidying()
        return bool(self._listener.fileno() >= 0 or self._runs or self._waiting)

    def _seconds_to_wait(self) -> float:
        deadlines = [run.deadline for run in self._runs.values() if not run.verdict]
        if not self._runs and not self._waiting:
            deadlines.append(self._idle_at())
        return min([_TICK, *(max(0.0, deadline - time.monotonic()) for deadline in deadlines)])

    def _idle_at(self) -> float:
        return self._busy_at + client.limit("IDLE", 3600)

    def _needs_successor(self) -> bool:
        grown = _resident() - self._memory
        return self._forks >= client.limit("FORKS", 1000) or grown > client.limit("GROWTH", 64) << 20

    def _in_place(self) -> bool:
        """Whether the socket's path still leads to this server: a successor takes it over."""
        try:
            return os.stat(self._path).st_ino == self._inode
        except OSError:
            return False

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if struct.unpack("3i", credentials)[1] != os.geteuid():
            connection.close()
            return
        self._waiting.add(connection)
        self._selector.register(connection, selectors.EVENT_READ, self._request)
        with suppress(OSError):
            connection.send(client.PROTOCOL)

    def _request(self, connection: socket.socket) -> None:
        self._waiting.discard(connection)
        self._selector.unregister(connection)
        try:
            data, descriptors, flags, _ = socket.recv_fds(connection, 1 << 20, 3, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            data, descriptors, flags = b"", [], 0
        try:
            if not data or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                connection.close()  # the client is gone, or its request does not fit into one message
            else:
                self._take(connection, _parse(data), descriptors)
        finally:
            for fd in descriptors:
                os.close(fd)

    def _take(self, connection: socket.socket, request: Request, descriptors: list[int]) -> None:
        # Ended in between, the client would not know that its command runs, and run it a second time.
        with _signals_held_back():
            self._start(connection, request, descriptors)

    def _start(self, connection: socket.socket, request: Request, descriptors: list[int]) -> None:
        try:
            pid = _fork(lambda: self._run_in_fork(connection, request, descriptors))
        except OSError:  # no memory, too many processes: the client runs the command itself
            connection.close()
            return
        self._forks += 1
        self._busy_at = time.monotonic()
        deadline = self._busy_at + request.seconds if request.seconds else float("inf")
        run = Run(pid, os.pidfd_open(pid), connection, deadline)
        self._runs[run.pidfd] = run
        self._selector.register(run.pidfd, selectors.EVENT_READ, self._ended)
        self._selector.register(connection, selectors.EVENT_READ, lambda _: self._on_message(run))
        with suppress(OSError):
            connection.send(b"taken")

    def _run_in_fork(self, connection: socket.socket, request: Request, descriptors: list[int]) -> NoReturn:
        """Give the fork the state that the client's process has, and run the command."""
        try:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            os.setsid()
            self._listener.close()
            os.close(client.SLOT_FD)
            connection.close()
            for other in self._waiting:
                other.close()
            for run in self._runs.values():
                run.connection.close()
                os.close(run.pidfd)
            for number, fd in enumerate(descriptors):
                os.dup2(fd, number)
                os.close(fd)
            if request.terminal >= 0:
                with suppress(OSError):
                    fcntl.ioctl(request.terminal, termios.TIOCSCTTY, 0)
            process.default_signals(request.ignored)
            os.umask(request.umask)
            os.environb.clear()
            os.environb.update(request.environ)
            process.open_streams()
            os.chdir(request.cwd)
            self._run(request)
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            os._exit(70)

    def _start_tidying(self) -> None:
        try:
            with _signals_held_back():
                pid = _fork(self._tidy_in_fork)
        except OSError:  # no memory, too many processes: the next time
            return
        pidfd = os.pidfd_open(pid)
        self._selector.register(pidfd, selectors.EVENT_READ, lambda _: self._tidied(pid, pidfd))

    def _tidy_in_fork(self) -> NoReturn:
        try:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            self._tidy()
        finally:
            os._exit(0)

    def _tidied(self, pid: int, pidfd: int) -> None:
        os.waitpid(pid, 0)
        self._selector.unregister(pidfd)
        os.close(pidfd)

    def _on_message(self, run: Run) -> None:
        """A signal to forward, or the end of the client."""
        try:
            data = run.connection.recv(100)
        except OSError:
            data = b""
        if data:
            with suppress(OSError):
                signal.pidfd_send_signal(run.pidfd, int(data))
        else:
            self._selector.unregister(run.connection)
            _kill_tree(run.pid)

    def _ended(self, pidfd: int) -> None:
        run = self._runs.pop(pidfd)
        self._busy_at = time.monotonic()
        _, status = os.waitpid(run.pid, 0)
        with suppress(OSError):
            run.connection.send(run.verdict or b"%d" % status)
        with suppress(KeyError):
            self._selector.unregister(run.connection)
        self._selector.unregister(pidfd)
        run.connection.close()
        os.close(pidfd)


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """For a fork and what belongs to it.

    Python runs code of its libraries after a fork, and ignores an exception there, such as that of our handler for
    SIGTERM.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)


def _fork(child: Callable[[], NoReturn]) -> int:
    """Fork; the child begins with its signals blocked, until it has handlers of its own."""
    pid = os.fork()
    if pid == 0:
        child()
    return pid


def _parse(data: bytes) -> Request:
    words = iter(data.split(b"\0"))
    umask, seconds, terminal, ignored = (int(next(words)) for _ in range(4))
    signals = [int(next(words)) for _ in range(ignored)]
    argc, cwd = int(next(words)), next(words)
    argv = [next(words) for _ in range(argc)]
    environ = dict(word.split(b"=", 1) for word in words)
    return Request(umask, seconds, terminal, signals, cwd, argv, environ)


def _kill_tree(pid: int) -> None:
    """Kill a process, its descendants and what else is in its session."""
    for _ in range(5):  # again, for processes that were forked meanwhile
        doomed = {pid}
        processes = _processes()
        for _ in processes:
            more = {child for child, (parent, session) in processes.items() if parent in doomed or session == pid}
            if more <= doomed:
                break
            doomed |= more
        doomed &= processes.keys()
        if not doomed:
            return
        for one in doomed:
            with suppress(OSError):
                os.kill(one, signal.SIGKILL)


def _processes() -> dict[int, tuple[int, int]]:
    """Parent and session of every process that is not a zombie."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError), open(f"/proc/{name}/stat") as file:
                state, parent, _, session = file.read().rpartition(")")[2].split()[:4]
                if state != "Z":
                    found[int(name)] = (int(parent), int(session))
    return found


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
