"""The program on PATH: passes the command to a warm server, or becomes the real program.

Its own start is part of every run, so it imports nothing that is slow to import (no socket, signal, json, hashlib).
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
LOCK_FD, SLOT_FD = 3, 4  # descriptors that a starting server inherits

# Variables that Python and Ansible read when they start. A server serves only callers that have the same values...
_START_NAMES = (b"HOME", b"LANG", b"LANGUAGE", b"NO_COLOR", b"TZ")
_START_PREFIXES = (b"ANSIBLE_", b"LC_", b"PYTHON", b"WARM_RUNNER_")
# ... except these, which ansible-runner sets for each run; programs.py makes Ansible read them again.
_PER_RUN = (b"ANSIBLE_CACHE_PLUGIN_CONNECTION", b"ANSIBLE_ROLES_PATH")

_HELLO_SECONDS = 1  # by default; a healthy server answers within a millisecond
_TAKEN_SECONDS = 5
_RETRY_SECONDS = 60  # after a server failed to start
_SERVER_FILES = ("server.py", "folders.py", "programs.py", "process.py", "shortcuts.py", "action/normal.py")
_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def main(here: str) -> None:
    """Run the command that has the name of this program; `here` is the folder on PATH that contains it."""
    program = os.path.basename(sys.argv[0])
    real = _real(program, here)
    argv = [real, *sys.argv[1:]]
    if program == "ansible-runner":
        _limit_artifacts(argv)
        _hold(argv)
    if os.environ.get("WARM_RUNNER") != "off":
        try:
            _try_warm(program, argv)
        except OSError:
            pass
    os.execv(real, argv)


def _limit_artifacts(argv: list[str]) -> None:
    """Whoever starts ansible-runner may take the number from an object that anyone can write."""
    if (number := limit("ARTIFACTS", 0)) and "--rotate-artifacts" in argv[:-1]:
        argv[argv.index("--rotate-artifacts") + 1] = str(number)


def _hold(argv: list[str]) -> None:
    """Keep the folder of this run until we end, also when we become the real program (folders.py)."""
    if os.environ.get("WARM_RUNNER_FOLDERS") and argv[1:2] == ["run"]:
        try:
            fd = os.open(argv[2], os.O_RDONLY | os.O_DIRECTORY)
            os.set_inheritable(fd, True)
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (OSError, IndexError):
            pass  # the program reports the problem


def _try_warm(program: str, argv: list[str]) -> None:
    """Run the command on a server and exit; returns when the caller must run it."""
    folder = home()
    if not folder or not argv[0].startswith("/"):
        return
    name = key(program, argv[0])
    server = _connect(f"{folder}/{name}")
    if server:
        _run_on_server(server, program, argv)
    elif interpreter := _interpreter(argv[0]):
        start(folder, name, [*interpreter, _PACKAGE, program, argv[0]])


def home() -> str | None:
    """The folder of the sockets; None when others can write to it, or its path is too long."""
    path = os.environ.get("WARM_RUNNER_HOME") or f"/tmp/warm-runner-{os.geteuid()}"  # noqa: S108 (its owner is checked)
    try:
        os.mkdir(path, 0o700)
    except OSError:
        pass  # it exists, or lstat reports the problem
    seen = os.lstat(path)
    ours = stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and not seen.st_mode & 0o077
    return path if ours and len(os.fsencode(path)) < 75 else None  # a socket's path may have 107 bytes


def key(program: str, real: str) -> str:
    """The name of the server for this command: a hash of everything that is read at start."""
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
    """Start a server in the background, unless one is starting, one just failed to start, or the limit is reached."""
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
    """The first program of that name on PATH outside our own folder."""
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
    """The interpreter in a script's first line; empty when it is not a Python script."""
    with open(real, "rb") as file:
        first = os.fsdecode(file.readline(1024))
    return first[2:].split() if first.startswith("#!") and "python" in first else []


def _become_server(folder: str, name: str, command: list[str]) -> None:
    path = f"{folder}/{name}.lock"
    tried = os.stat(path).st_mtime if os.path.exists(path) else 0
    lock = _locked(path)  # held until the server serves
    slots = (_locked(f"{folder}/slot-{number}") for number in range(limit("SERVERS", 8)))
    slot = next((fd for fd in slots if fd is not None), None)  # held until the server ends
    if lock is None or slot is None or time.time() - tried < _RETRY_SECONDS:
        return
    os.utime(lock)
    null = os.open("/dev/null", os.O_RDWR)
    log = os.open(f"{folder}/{name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    # In two steps, because the descriptors may already have each other's numbers.
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


def names(name: str) -> list[str]:
    """A list of names that can be set in the environment, separated by commas."""
    return [word for word in os.environ.get(f"WARM_RUNNER_{name}", "").split(",") if word]


def _connect(path: str) -> _socket.socket | None:
    """A connection to a healthy server, or None."""
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    server.settimeout(limit("HELLO", _HELLO_SECONDS))
    try:
        server.connect(path)
        if server.recv(100) == PROTOCOL:
            return server
    except OSError:
        pass
    server.close()
    return None


def _run_on_server(server: _socket.socket, program: str, argv: list[str]) -> None:
    """Returns only when the server did not accept the command."""
    cwd = os.getcwd()
    terminals = [fd for fd in (0, 1, 2) if os.isatty(fd)]
    if terminals and os.getsid(0) != os.getpid():
        return  # a shell with job control owns the terminal's session: no other process can replace us in it
    terminal = terminals[0] if terminals and _release_terminal(terminals[0]) else -1
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
    # A signal that arrives before we can forward it is held back until then.
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
    """Forward signals until the command has ended, then exit with its status."""
    try:
        # Through a pipe: a signal just before a blocking recv() would be handled only after it.
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
    finally:  # whatever fails here, the command must not be run a second time
        os._exit(1)


def _forward(signals: bytes, server: _socket.socket) -> None:
    try:
        for number in signals:
            server.send(b"%d" % number)
    except OSError:
        pass  # the command has just ended, and its answer is there


def _release_terminal(fd: int) -> bool:
    """As a session leader (pexpect makes us one), release the terminal, so that the run's own session can take it."""
    before = _signal.signal(_signal.SIGHUP, _signal.SIG_IGN)  # the kernel reports the loss of the terminal
    try:
        fcntl.ioctl(fd, termios.TIOCNOTTY)
    except OSError:  # it was not the terminal of our session
        return False
    finally:
        _signal.signal(_signal.SIGHUP, before)
    return True
