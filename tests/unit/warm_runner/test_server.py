"""Servers start, are replaced and end; without one everything works, only slower."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from warm_runner import server

from .warm import Warm, alive, wait_for

Fresh = Callable[..., Warm]


def test_the_first_run_is_cold_and_starts_a_server(fresh: Fresh) -> None:
    runner = fresh()
    assert not runner.is_warm()
    wait_for(runner.sockets)
    assert runner.is_warm()
    assert len(runner.servers()) == 1
    assert stat.S_IMODE(runner.home.stat().st_mode) == 0o700
    assert not any(path.read_text() for path in runner.home.glob("*.log"))


def test_off_runs_the_real_program(fresh: Fresh) -> None:
    runner = fresh(WARM_RUNNER="off")
    assert not runner.is_warm()
    assert not runner.home.exists()


def test_a_folder_that_others_can_write_to_is_not_used(fresh: Fresh) -> None:
    runner = fresh()
    runner.home.mkdir()
    runner.home.chmod(0o777)
    assert not runner.is_warm()
    assert not list(runner.home.iterdir())


def test_a_request_too_long_for_a_message_is_run_by_the_real_program(warm: Warm) -> None:
    code = "import os; print(len(os.environ['LONG0']))"
    done = warm.probe(code, **{f"LONG{number}": "x" * 100_000 for number in range(4)})
    assert done.stdout == "100000\n"


def test_a_server_that_died_is_replaced(fresh: Fresh) -> None:
    runner = fresh()
    runner.warm_up("ansible-runner", "pass")
    (server,) = runner.servers()
    with runner.start("ansible-runner", "import os, time; print(os.getpid(), flush=True); time.sleep(60)") as client:
        assert client.stdout
        pid = int(client.stdout.readline())
        os.kill(server, signal.SIGKILL)
        _, error = client.communicate(timeout=10)
    assert client.returncode == 1
    assert "server died" in error
    wait_for(lambda: not alive(pid))
    assert not runner.is_warm()
    wait_for(runner.is_warm)


def test_a_hung_server_is_bypassed_and_replaced(fresh: Fresh) -> None:
    runner = fresh(WARM_RUNNER_HELLO="1")
    runner.warm_up("ansible-runner", "pass")
    (sick,) = runner.servers()
    os.kill(sick, signal.SIGSTOP)
    assert not runner.is_warm()
    wait_for(lambda: len(runner.servers()) == 2)
    wait_for(runner.is_warm)
    os.kill(sick, signal.SIGCONT)
    wait_for(lambda: not alive(sick))
    assert runner.is_warm()


def test_sigterm_ends_a_server_and_its_runs(fresh: Fresh) -> None:
    runner = fresh()
    runner.warm_up("ansible-runner", "pass")
    with runner.start("ansible-runner", "import os, time; print(os.getpid(), flush=True); time.sleep(60)") as client:
        assert client.stdout
        pid = int(client.stdout.readline())
        runner.stop()
        client.communicate(timeout=10)
    assert not alive(pid)
    assert not runner.sockets()


def test_sigterm_right_after_the_fork_waits_until_the_client_knows_that_its_command_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the client would run the command a second time."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    other.settimeout(5)
    sick = object.__new__(server.Server)
    sick._forks, sick._runs, sick._selector = 0, {}, selectors.PollSelector()
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        with subprocess.Popen(["sleep", "60"]) as command, one, other:

            def fork(_: object) -> int:
                os.kill(os.getpid(), signal.SIGTERM)
                return command.pid

            monkeypatch.setattr(server, "_fork", fork)
            with pytest.raises(SystemExit):
                sick._take(one, server.Request(0, 0, -1, [], b"/", [], {}), [])
            assert other.recv(100) == b"taken"
            (run,) = sick._runs.values()
            assert run.pid == command.pid
            os.close(run.pidfd)
            command.kill()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_one_server_for_each_configuration(fresh: Fresh, tmp_path: Path) -> None:
    runner = fresh()
    runner.warm_up("ansible-runner", "pass")
    assert not runner.is_warm(ANSIBLE_FORKS="7")
    assert not runner.is_warm(LC_TIME="C")
    wait_for(lambda: len(runner.sockets()) == 3)
    assert runner.is_warm(ANSIBLE_FORKS="7")
    assert runner.is_warm(LC_TIME="C")
    assert runner.is_warm(ANSIBLE_ROLES_PATH="/some", ANSIBLE_CACHE_PLUGIN_CONNECTION="/other", KUBECONFIG="/third")
    (runner.home.parent / ".ansible.cfg").write_text("[defaults]\n")
    assert not runner.is_warm()
    wait_for(lambda: len(runner.sockets()) == 4)
    assert len(runner.servers()) == 4


def test_the_number_of_servers_is_limited(fresh: Fresh) -> None:
    runner = fresh(WARM_RUNNER_SERVERS="1")
    runner.warm_up("ansible-runner", "pass")
    assert not runner.is_warm(ANSIBLE_FORKS="7")
    time.sleep(0.5)
    assert len(runner.servers()) == 1
    assert runner.is_warm()


def test_a_server_is_replaced_after_enough_forks_without_a_cold_run(fresh: Fresh) -> None:
    runner = fresh(WARM_RUNNER_FORKS="3")
    runner.warm_up("ansible-runner", "pass")
    (first,) = runner.servers()
    with runner.start("ansible-runner", "sys.stdin.read(); print('done')") as client:
        seen: set[str] = set()
        while alive(first) and len(seen) < 2:
            done = runner.probe("import os; print(os.getppid(), 'warm_runner.server' in sys.modules)")
            parent, is_warm = done.stdout.split()
            assert is_warm == "True"
            seen.add(parent)
        assert alive(first)  # it still has a run
        assert client.communicate("", timeout=10)[0] == "done\n"
    wait_for(lambda: not alive(first))


def test_an_idle_server_ends(fresh: Fresh) -> None:
    runner = fresh(WARM_RUNNER_IDLE="1")
    runner.warm_up("ansible-runner", "pass")
    wait_for(lambda: not runner.servers())
    assert not runner.sockets()


def test_a_server_that_cannot_start_is_not_retried_at_once(fresh: Fresh, tmp_path: Path) -> None:
    runner = fresh(PYTHONPATH=str(tmp_path))
    (tmp_path / "ansible_runner").mkdir()
    (tmp_path / "ansible_runner/__init__.py").write_text(f"open('{tmp_path}/tried', 'a').write('x'); 1 / 0")
    for _ in range(3):
        assert not runner.is_warm()
        wait_for((tmp_path / "tried").exists)
        wait_for(lambda: not runner.servers())
    assert (tmp_path / "tried").read_text() == "x"
    assert "ZeroDivisionError" in "".join(path.read_text() for path in runner.home.glob("*.log"))
