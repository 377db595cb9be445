"""Time that each warm runner shortcut saves in a settled reconcile: python -m benchmarks.shortcuts [ROUNDS [NAME …]]

Runs the role as ansible-operator does, against the sandbox but without a pod: with all shortcuts, and with one of them
skipped. The variants alternate, so that machine load affects all of them. Compares the lower quartile of the wall times
and the sum of the CPU times.
"""

from __future__ import annotations

import os
import random
import re
import signal
import socketserver
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import KubeError

from sandbox import layout
from sandbox.errors import SandboxError
from sandbox.images import operator as operator_image
from sandbox.run import wait_for

from . import clusters, profile
from .kube import api, apply, namespace, wait_for_all

SHORTCUTS = (
    "close_terminals_at_once",
    "be_the_client",
    "send_events_over_one_connection",
    "run_trusted_actions_here",
)
_NAME = "bench"
_ROUNDS = 40
_SETTING = re.compile(r"\b(WARM_RUNNER_\w+)=([^\s\\]+)")


@dataclass(frozen=True)
class Variant:
    """A warm runner with its own servers."""

    name: str
    environment: Mapping[str, str]

    @property
    def home(self) -> Path:
        return Path(self.environment["WARM_RUNNER_HOME"])

    def servers(self) -> list[int]:
        """PIDs of the servers. A run has the same command line, but is a child process of its server."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.fsencode(self.home) + b"/" in (path / "cmdline").read_bytes():
                    found[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        return [pid for pid, parent in found.items() if parent not in found]

    def cpu_seconds(self) -> float:
        """CPU time of the servers and of completed runs."""
        ticks = 0
        for pid in self.servers():
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else _ROUNDS
    try:
        with namespace(f"{clusters.PREFIX}shortcuts") as where, tempfile.TemporaryDirectory(prefix="wr-") as folder:
            apply(clusters.cluster(where, _NAME))
            wait_for_all(where, [_NAME], "settled", clusters.is_settled)
            declared = api().get("EtcdCluster", where, _NAME) or {}
            measure(declared, variants(Path(folder)), Path(folder), rounds)
    except (SandboxError, KubeError) as error:
        sys.exit(f"shortcuts: {error}")


def variants(folder: Path) -> list[Variant]:
    """A variant with all shortcuts, and one variant for each skipped shortcut."""
    packages = folder / "packages"
    packages.mkdir()
    operator_image.install_events_plugin(packages)
    dockerfile = (layout.REPOSITORY / "Dockerfile").read_text()
    common = {
        **os.environ,
        **profile.settings(dockerfile),
        **dict(_SETTING.findall(dockerfile)),
        "PATH": f"{layout.REPOSITORY}/warm_runner/bin:{os.environ['PATH']}",
        "PYTHONPATH": f"{packages}:{os.environ.get('PYTHONPATH', '')}",
        "ANSIBLE_ACTION_PLUGINS": f"{layout.REPOSITORY}/warm_runner/action",
        "KUBECONFIG": str(layout.kubeconfig()),
    }
    created = []
    for number, skipped in enumerate(("", *(sys.argv[2:] or SHORTCUTS))):
        home = folder / f"home{number}"
        home.mkdir(mode=0o700)
        created.append(Variant(skipped, {**common, "WARM_RUNNER_HOME": str(home), "WARM_RUNNER_SKIP": skipped}))
    return created


def measure(declared: Mapping[str, Any], compared: list[Variant], folder: Path, rounds: int) -> None:
    """Run the variants alternately and print their differences from the first one."""
    with ExitStack() as stack:
        events = stack.enter_context(_events(folder / "events"))
        for variant in compared:
            stack.callback(_stop, variant)
            profile.run(declared, variant.environment, events)
            wait_for("two warm servers to listen", lambda: len(_sockets(variant)) == 2, timeout=30)  # noqa: B023
            for _ in range(2):
                profile.run(declared, variant.environment, events)
        cpu = {variant.name: -variant.cpu_seconds() for variant in compared}
        walls: dict[str, list[float]] = {variant.name: [] for variant in compared}
        for _ in range(rounds):
            for variant in random.sample(compared, len(compared)):
                walls[variant.name].append(profile.run(declared, variant.environment, events).wall_s)
                time.sleep(0.1)
        for variant in compared:
            cpu[variant.name] += variant.cpu_seconds()
    first = compared[0].name
    wall = {name: statistics.quantiles(found, n=4)[0] for name, found in walls.items()}
    print(f"With all shortcuts: {1000 * wall[first]:.0f} ms, {1000 * cpu[first] / rounds:.0f} ms of CPU time")
    print("   wall      CPU  saved by")
    for variant in compared[1:]:
        saved, saved_cpu = wall[variant.name] - wall[first], (cpu[variant.name] - cpu[first]) / rounds
        print(f"{1000 * saved:5.0f} ms {1000 * saved_cpu:5.0f} ms  {variant.name}")


def _sockets(variant: Variant) -> list[Path]:
    return [path for path in variant.home.iterdir() if path.is_socket()]


def _stop(variant: Variant) -> None:
    for pid in variant.servers():
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    wait_for("the warm servers to exit", lambda: not variant.servers(), timeout=30)


class _Events(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _events(path: Path) -> Iterator[str]:
    """Receive events as ansible-operator does; the path of the socket."""
    with _Events(str(path), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield str(path)
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    main()
