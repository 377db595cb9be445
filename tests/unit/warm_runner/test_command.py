"""A command that a server runs behaves like one that was started."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from .warm import IS_WARM, Warm, alive, wait_for

_READY = "print('ready', flush=True);"
# In pieces: Python would sleep to the end if a signal came right before it does.
_SLEEP = _READY + "import time; [time.sleep(0.1) for _ in range(600)]"


def test_a_command_is_run_by_the_server(warm: Warm) -> None:
    assert warm.is_warm()
    assert warm.probe("import os; print(os.getppid())").stdout == f"{warm.servers()[0]}\n"


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("pass", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(-1)", 255, ""),
        ("sys.exit('why')", 1, "why\n"),
        ("import os; os._exit(7)", 7, ""),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("import os; os.abort()", -signal.SIGABRT, ""),
        ("import atexit; atexit.register(print, 'bye', file=sys.stderr)", 0, "bye\n"),
        ("import threading; threading.Timer(0.1, print, ['late'], {'file': sys.stderr}).start()", 0, "late\n"),
    ],
)
def test_exit_codes_are_those_of_the_command(warm: Warm, code: str, status: int, error: str) -> None:
    done = warm.probe(code)
    assert (done.returncode, done.stderr) == (status, error)


@pytest.mark.parametrize("code", ["1 / 0", "raise KeyboardInterrupt", "import os; os.chdir('/nowhere')"])
def test_an_exception_is_printed_as_usual(warm: Warm, code: str) -> None:
    there, here = warm.probe(code), warm.probe(code, WARM_RUNNER="off")
    assert (there.returncode, there.stderr.splitlines()[-1]) == (here.returncode, here.stderr.splitlines()[-1])


def test_standard_streams_are_those_of_the_client(warm: Warm) -> None:
    text = "ä" * 300_000
    done = warm.probe("text = sys.stdin.read(); print(text); print(len(text), file=sys.stderr)", stdin=text)
    assert (done.stdout, done.stderr) == (f"{text}\n", "300000\n")


_SURROUNDINGS = """
import os, resource, signal
mask = os.umask(0)
print(sys.argv[2:], os.getcwd(), oct(mask), sorted(os.environ.items()), sys.path, sys.executable, __name__, __file__)
print(sorted(os.listdir('/proc/self/fd')), signal.pthread_sigmask(0, []), sys.flags, signal.getsignal(2))
print([s for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN])
print([(s.encoding, s.errors, s.line_buffering, s.isatty(), s.name) for s in (sys.stdin, sys.stdout, sys.stderr)])
print(os.getuid(), os.getpriority(0, 0), sys.stdin.seekable(), os.getsid(0) == os.getpid() == os.getpgrp())
"""


def test_the_process_state_is_that_of_a_fresh_process(warm: Warm, tmp_path: Path) -> None:
    argv: list[str | bytes] = ["ansible-runner", _SURROUNDINGS, "", "two words", "ä", b"\xff\xfe"]
    old = os.umask(0o027)
    try:
        there = warm.run(*argv, cwd=tmp_path, env={"SOME": "thing", "EMPTY": ""})
        here = warm.run(*argv, cwd=tmp_path, env={"SOME": "thing", "EMPTY": "", "WARM_RUNNER": "off"})
    finally:
        os.umask(old)
    assert there.stdout.replace("'WARM_RUNNER', 'off'", "") == here.stdout.replace("('WARM_RUNNER', 'off'), ", "")
    assert str(tmp_path) in there.stdout


def test_signals_that_the_caller_ignores_stay_ignored(warm: Warm) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        done = warm.probe("import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert done.stdout == "True\n"


def test_many_commands_run_at_once(warm: Warm) -> None:
    clients = [warm.start("ansible-runner", f"print({IS_WARM}, {n}); sys.exit({n})") for n in range(12)]
    for number, client in enumerate(clients):
        assert client.communicate(timeout=30)[0] == f"True {number}\n"
        assert client.returncode == number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT])
def test_signals_reach_the_command(warm: Warm, number: signal.Signals) -> None:
    code = f"import signal; signal.signal({number}, lambda *_: sys.exit(9));" + _SLEEP
    with warm.start("ansible-runner", code) as client:
        assert client.stdout
        assert client.stdout.readline() == "ready\n"
        client.send_signal(number)
        assert client.wait(10) == 9
        client.communicate()


def test_a_signal_ends_the_client_as_it_ends_the_command(warm: Warm) -> None:
    with warm.start("ansible-runner", _SLEEP) as client:
        assert client.stdout
        client.stdout.readline()
        os.killpg(client.pid, signal.SIGTERM)
        assert client.wait(10) == -signal.SIGTERM
        client.communicate()


_FAMILY = """
import os, subprocess, time
same = subprocess.Popen(['sleep', '60'])
other = subprocess.Popen(['sleep', '60'], start_new_session=True)
print(os.getpid(), same.pid, other.pid, flush=True)
time.sleep(60)
"""


def test_killing_the_client_kills_all_its_processes(warm: Warm) -> None:
    with warm.start("ansible-runner", _FAMILY) as client:
        assert client.stdout
        family = [int(word) for word in client.stdout.readline().split()]
        assert all(alive(pid) for pid in family)
        client.kill()
        wait_for(lambda: not any(alive(pid) for pid in family))
        client.communicate()


def test_a_run_over_the_limit_is_killed_and_reported(warm: Warm) -> None:
    warm.warm_up("ansible-runner", "pass", WARM_RUNNER_LIMIT="1")
    with warm.start("ansible-runner", _FAMILY, env={"WARM_RUNNER_LIMIT": "1"}) as client:
        out, err = client.communicate(timeout=10)
    assert client.returncode == 124
    assert "WARM_RUNNER_LIMIT" in err
    wait_for(lambda: not any(alive(int(pid)) for pid in out.split()))


_TERMINAL = """
import os, signal
print([os.isatty(n) for n in (0, 1, 2)], os.getpgrp() == os.tcgetpgrp(0), os.get_terminal_size())
open('/dev/tty').close()
"""


def test_a_terminal_is_passed_to_the_run(warm: Warm) -> None:
    code = _TERMINAL + f"print({IS_WARM}, input('what? '))"
    client = pexpect.spawn("ansible-runner", [code], env=warm.env(), encoding="utf-8", dimensions=(33, 99), echo=False)
    client.expect(r"\[True, True, True\] True os.terminal_size\(columns=99, lines=33\)\r\n")
    client.expect("what[?] ")
    client.sendline("this")
    client.expect("True this\r\n")
    client.expect(pexpect.EOF)
    client.close()
    assert client.exitstatus == 0


def test_control_c_reaches_the_command(warm: Warm) -> None:
    client = pexpect.spawn("ansible-runner", [_SLEEP], env=warm.env(), encoding="utf-8")
    client.expect("ready")
    client.sendintr()
    client.expect("KeyboardInterrupt")
    client.expect(pexpect.EOF)
    client.close()
    assert client.signalstatus == signal.SIGINT


def test_the_terminal_of_a_shell_stays_with_the_shell(warm: Warm) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["ansible-runner", f"print({IS_WARM})"], env=warm.env(), stdin=theirs, stdout=subprocess.PIPE
    ) as client:
        assert client.communicate(timeout=20)[0] == b"False\n"
    os.close(ours)
    os.close(theirs)


_POISON = """
import builtins, json, os, random, signal, socket, subprocess, threading, atexit, gc, locale
import ansible_runner, yaml
os.environ['POISON'] = 'yes'
os.environ.pop('HOME')
os.chdir('/usr')
os.umask(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
json.dumps = yaml.safe_load = ansible_runner.run = None
ansible_runner.plugins['poison'] = None
sys.path.insert(0, '/poison')
sys.modules['poison'] = None
random.seed(1)
socket.setdefaulttimeout(0.001)
gc.disable()
locale.setlocale(locale.LC_ALL, 'C')
atexit.register(os.system, 'true')
sys.setrecursionlimit(200)
subprocess.Popen(['sleep', '3'], start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
threading.Thread(target=lambda: __import__('time').sleep(3), daemon=True).start()
os.closerange(3, 100)
builtins.len = None
"""
_SYMPTOMS = """
import json, os, random, signal, socket, threading, gc, locale
import ansible_runner, yaml
print(sorted(os.environ), os.getcwd(), os.umask(0), signal.getsignal(15), signal.pthread_sigmask(0, []))
print(json.dumps({'a': len('bc')}), yaml.safe_load('a: 1'), ansible_runner.run is None, ansible_runner.plugins)
print(sys.path, 'poison' in sys.modules, socket.getdefaulttimeout(), gc.isenabled(), locale.getlocale())
print(sys.getrecursionlimit(), threading.active_count())
"""


def test_a_run_leaves_nothing_for_the_next(warm: Warm) -> None:
    before = warm.probe(_SYMPTOMS)
    assert before.returncode == 0
    assert warm.probe(_POISON).returncode == 0
    assert warm.probe(_SYMPTOMS).stdout == before.stdout
    assert len({warm.probe("import random, uuid; print(random.random(), uuid.uuid4())").stdout for _ in range(3)}) == 3
