"""The program that stands on PATH: has a warm server run the command, or runs the real program itself.

Its own start is paid in every run, so it imports nothing that is slow to import (no socket, signal, json, hashlib).
"""

from __future__ import annotations

import _socket
import fcntl
import os
import select
import stat
import sys
import termios
import time
from _blake2 import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

PROTOCOL = b"warm-runner 1"
FORWARDED = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2)
LOCK_FD, SLOT_FD = 3, 4  # of a server that is being started

# What Python and Ansible read when they start. A server runs only the commands of callers that agree in all of it...
_START_NAMES = (b"HOME", b"LANG", b"LANGUAGE", b"NO_COLOR", b"TZ")
_START_PREFIXES = (b"ANSIBLE_", b"LC_", b"PYTHON", b"WARM_RUNNER_")
# ... but for these, which ansible-runner sets anew for every run; programs.py has Ansible read them again.
_PER_RUN = (b"ANSIBLE_CACHE_PLUGIN_CONNECTION", b"ANSIBLE_ROLES_PATH")

_HELLO_SECONDS = 1  # a healthy server needs a millisecond
_TAKEN_SECONDS = 5
_RETRY_SECONDS = 60  # after a server that could not start
_SERVER_FILES = ("server.py", "programs.py", "process.py", "shortcuts.py", "action/normal.py")
_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def main(here: str) -> None:
    """Run the command that is called like this program; `here` is the folder on PATH that holds it."""
    program = os.path.basename(sys.argv[0])
    real = _real(program, here)
    argv = [real, *sys.argv[1:]]
    if os.environ.get("WARM_RUNNER") != "off":
        try:
            _try_warm(program, argv)
        except OSError:
            pass
    os.execv(real, argv)


def _try_warm(program: str, argv: list[str]) -> None:
    """Returns when the command is still to be run."""
    folder = home()
    if not folder or not argv[0].startswith("/"):
        return
    name = key(program, argv[0])
    server = _connect(f"{folder}/{name}")
    if server:
        _have_it_run(server, program, argv)
    elif interpreter := _interpreter(argv[0]):
        start(folder, name, [*interpreter, _PACKAGE, program, argv[0]])


def home() -> str | None:
    """The folder of the sockets; None when it isn't ours alone, or its name is too long."""
    path = os.environ.get("WARM_RUNNER_HOME") or f"/tmp/warm-runner-{os.geteuid()}"  # noqa: S108 (its owner is checked)
    try:
        os.mkdir(path, 0o700)
    except OSError:
        pass  # it is there, or lstat says what is wrong
    seen = os.lstat(path)
    ours = stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and not seen.st_mode & 0o077
    return path if ours and len(os.fsencode(path)) < 75 else None  # a socket's path may have 107 bytes


def key(program: str, real: str) -> str:
    """The name of the server for such a command: whatever is read at start is in it."""
    parts = [program.encode(), os.fsencode(real)]
    parts += sorted(
        name + b"=" + value
        for name, value in os.environb.items()
        if (name in _START_NAMES or name.startswith(_START_PREFIXES)) and name not in _PER_RUN
    )
    files = [real, *(f"{_PACKAGE}/{name}" for name in _SERVER_FILES)]
    files += ["ansible.cfg", os.environ.get("HOME", "") + "/.ansible.cfg", "/etc/ansible/ansible.cfg"]
    if explicit := os.environ.get("ANSIBLE_CONFIG"):
        files += [explicit, f"{explicit}/ansible.cfg"]
    for path in files:
        try:
            seen = os.stat(path)
        except OSError:
            continue
        parts.append(b"%s %d %d %d" % (os.fsencode(path), seen.st_ino, seen.st_mtime_ns, seen.st_size))
    return blake2b(b"\0".join(parts), digest_size=10).hexdigest()


def start(folder: str, name: str, command: list[str]) -> None:
    """Start a server in the background, unless one is starting, one just failed to, or there are enough."""
    middle = os.fork()
    if middle:
        os.waitpid(middle, 0)
        return
    try:
        os.setsid()
        if os.fork() == 0:
            _become_server(folder, name, command)
    finally:
        os._exit(0)


def _real(program: str, here: str) -> str:
    """The first program of that name on PATH that is not in our own folder."""
    ours = os.stat(here)
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        path = f"{folder or '.'}/{program}"
        try:
            other = not os.path.samestat(os.stat(folder or "."), ours)
        except OSError:
            continue
        if other and os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    sys.exit(f"{program}: not found on PATH behind {here}")


def _interpreter(real: str) -> list[str]:
    """The Python that a script asks for; empty when it is no Python script."""
    with open(real, "rb") as file:
        first = os.fsdecode(file.readline(1024))
    return first[2:].split() if first.startswith("#!") and "python" in first else []


def _become_server(folder: str, name: str, command: list[str]) -> None:
    path = f"{folder}/{name}.lock"
    tried = os.stat(path).st_mtime if os.path.exists(path) else 0
    lock = _locked(path)  # held until it serves
    slots = (_locked(f"{folder}/slot-{number}") for number in range(limit("SERVERS", 8)))
    slot = next((fd for fd in slots if fd is not None), None)  # held for life
    if lock is None or slot is None or time.time() - tried < _RETRY_SECONDS:
        return
    os.utime(lock)
    null = os.open("/dev/null", os.O_RDWR)
    log = os.open(f"{folder}/{name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    # Twice, because the descriptors may be in each other's place.
    kept = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (null, null, log, lock, slot)]
    for number, fd in enumerate(kept):
        os.dup2(fd, number)
    os.closerange(len(kept), 65536)
    for number in FORWARDED:
        _signal.signal(number, _signal.SIG_DFL)
    os.execvp(command[0], [*command, f"{folder}/{name}"])


def _locked(path: str) -> int | None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def limit(name: str, default: int) -> int:
    """A number that can be set in the environment."""
    value = os.environ.get(f"WARM_RUNNER_{name}", "")
    return int(value) if value.isdecimal() else default


def _connect(path: str) -> _socket.socket | None:
    """A connection to a healthy server."""
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    server.settimeout(_HELLO_SECONDS)
    try:
        server.connect(path)
        if server.recv(100) == PROTOCOL:
            return server
    except OSError:
        pass
    server.close()
    return None


def _have_it_run(server: _socket.socket, program: str, argv: list[str]) -> None:
    """Returns only when the server did not take the command."""
    cwd = os.getcwd()
    terminals = [fd for fd in (0, 1, 2) if os.isatty(fd)]
    if terminals and os.getsid(0) != os.getpid():
        return  # the terminal's session is a shell's, with job control: no other process can take our place in it
    terminal = terminals[0] if terminals and _give_up_terminal(terminals[0]) else -1
    ignored = [int(number) for number in FORWARDED if _signal.getsignal(number) == _signal.SIG_IGN]
    umask = os.umask(0)
    os.umask(umask)
    seconds = limit("LIMIT", 900) if program == "ansible-runner" else 0
    numbers = [umask, seconds, terminal, len(ignored), *ignored, len(argv)]
    words = [b"%d" % number for number in numbers]
    words += [os.fsencode(word) for word in (cwd, *argv)]
    words += [name + b"=" + value for name, value in os.environb.items()]
    descriptors = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1, 2))
    server.settimeout(_TAKEN_SECONDS)
    # The command may be told something as soon as it runs, which is before we can pass it on: that must wait.
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, FORWARDED)
    try:
        server.sendmsg([b"\0".join(words)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
        taken = server.recv(100) == b"taken"
    except OSError:
        taken = False
    if taken:
        _wait(server, program, ignored, mask)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
    server.close()
    if terminal >= 0:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def _wait(server: _socket.socket, program: str, ignored: list[int], mask: set[int]) -> None:
    """Pass signals on until the command has ended, and end as it did."""
    try:
        # By a pipe: Python's own handlers would wait for the answer if a signal came right before we do.
        told, tell = os.pipe()
        os.set_blocking(tell, False)
        _signal.set_wakeup_fd(tell)
        for number in FORWARDED:
            if number not in ignored:
                _signal.signal(number, lambda *_: None)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        server.settimeout(None)
        try:
            while told in select.select([server.fileno(), told], [], [])[0]:
                _forward(os.read(told, 100), server)
            answer = server.recv(1000)
        except OSError:
            answer = b""
        if not answer:
            answer = b"256 warm runner: the server died while it ran %s; try again\n" % program.encode()
        status, _, text = answer.partition(b" ")
        os.write(2, text)
        code = os.waitstatus_to_exitcode(int(status))
        if code < 0:
            if -code in FORWARDED:
                _signal.signal(-code, _signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(code)
    finally:  # whatever goes wrong here, the command must not be run again
        os._exit(1)


def _forward(signals: bytes, server: _socket.socket) -> None:
    try:
        for number in signals:
            server.send(b"%d" % number)
    except OSError:
        pass  # it has just ended, and its answer is there


def _give_up_terminal(fd: int) -> bool:
    """As a session's leader (pexpect made us one), leave the terminal for the run's own session to take."""
    before = _signal.signal(_signal.SIGHUP, _signal.SIG_IGN)  # the kernel tells us that it is gone
    try:
        fcntl.ioctl(fd, termios.TIOCNOTTY)
    except OSError:  # it was not our session's
        return False
    finally:
        _signal.signal(_signal.SIGHUP, before)
    return True
