from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .plays import SETTINGS, make_role, run_role
from .warm import PYTHON_BIN, Warm, wait_for

_PROBE = f"""#!{sys.executable}
import sys
exec(sys.argv[1])
"""


@pytest.fixture(scope="session", autouse=True)
def heard_signals() -> None:
    """In the background and under nohup, tests start with signals ignored; their commands must not inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program called ansible-runner that runs the Python that it is given."""
    folder = tmp_path_factory.mktemp("probe")
    (folder / "ansible-runner").write_text(_PROBE)
    (folder / "ansible-runner").chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def warm(probes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """A runner whose server is ready."""
    runner = Warm(tmp_path_factory.mktemp("warm") / "home", probes)
    runner.warm_up("ansible-runner", "pass")
    yield runner
    runner.stop()


@pytest.fixture
def fresh(probes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Warm]]:
    """Makes runners with their own settings, without a server at first."""
    made: list[Warm] = []
    folder = tmp_path_factory.mktemp("fresh")  # a short path: the kernel takes a hundred letters for a socket

    def make(**environ: str) -> Warm:
        made.append(Warm(folder / f"home{len(made)}", probes, environ))
        return made[-1]

    yield make
    for runner in made:
        runner.stop()


@pytest.fixture(scope="session")
def playbooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """Servers for ansible-runner and for the ansible-playbook that it starts."""
    folder = tmp_path_factory.mktemp("playbooks")
    # A server for each of the environments that the tests come up with.
    runner = Warm(folder / "home", PYTHON_BIN, {**SETTINGS, "WARM_RUNNER_SERVERS": "30"})
    role = make_role(folder / "roles/warmup", "- ansible.builtin.debug:\n")
    run_role(runner, folder / "warmup", role)
    wait_for(lambda: len(runner.sockets()) == 2)
    assert not any(path.read_text() for path in runner.home.glob("*.log"))
    yield runner
    runner.stop()
