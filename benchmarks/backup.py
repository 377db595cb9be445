"""A snapshot of a large key space to a file and to S3, compared with `etcdctl snapshot save` in the same run.

Runs etcd and the S3 stores as plain processes, without Kubernetes. The module runs as it does in the Job of an
EtcdBackup.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.client import Client
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.endpoint import Endpoint
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError

from sandbox import layout, parts, pki
from sandbox.errors import SandboxError
from sandbox.run import wait_for

from .figures import Figures, rounds

_GIB = 1 << 30
_VALUE = 256 * 1024
_ROUNDS = 5
_ETCD, _PEER = 23790, 23800  # ports
# Two stores: with default settings, versitygw computes an MD5 for the ETag; with --data-integrity-etag it does not. On
# two cores the MD5 takes a quarter of the CPU time, none of it in the module.
_STORES = {"s3": (23810, ()), "s3_without_md5": (23820, ("--data-integrity-etag",))}
_MODULE = "ansible_collections.etcdops.etcd.plugins.modules.etcd_snapshot"
_VERSION = layout.ETCD_VERSIONS[1]


@dataclass(frozen=True)
class Taken:
    """Measurements of one snapshot."""

    seconds: float
    size: int
    memory: int  # peak RSS in bytes
    p99: float  # of concurrent writes, in seconds


def backup(size: int = _GIB) -> Figures:
    with tempfile.TemporaryDirectory(prefix="etcdops-bench-") as created, ExitStack() as stack:
        folder = Path(created)
        stack.enter_context(_etcd(folder))
        _certificates(folder)
        for name, (port, options) in _STORES.items():
            stack.enter_context(_store(folder, name, port, options))
        _fill(size)
        methods: dict[str, Callable[[int], list[str]]] = {
            "etcdctl": lambda number: _etcdctl(folder / f"etcdctl-{number}.db"),
            "file": lambda number: _snapshot_module(folder, f"{folder}/ours-{number}.db"),
            **{store: partial(_to_store, folder, store) for store in _STORES},
        }
        taken: dict[str, list[Taken]] = {method: [] for method in methods}
        for number in range(_ROUNDS):  # alternate, so that a slow period of the machine affects all methods
            for method, command in methods.items():
                taken[method].append(_measure(command(number), size))
                for leftover in [*folder.glob("*.db"), *folder.glob("*/bench/*.db")]:
                    leftover.unlink()
    return figures(taken)


def figures(taken: dict[str, list[Taken]]) -> Figures:
    """Median throughput in MB/s with its ratio to etcdctl, peak memory, and p99 latency of concurrent writes."""

    def speeds(method: str) -> list[float]:
        return [each.size / each.seconds / 1e6 for each in taken[method]]

    found: Figures = {}
    for method in taken:
        found |= rounds(f"{method}_mb_per_s", speeds(method))
    own = [method for method in taken if method != "etcdctl"]
    found |= {f"{method}_ratio": found[f"{method}_mb_per_s"] / found["etcdctl_mb_per_s"] for method in own}
    found |= {f"{method}_memory_mib": max(each.memory for each in taken[method]) / (1 << 20) for method in own}
    return found | {
        f"{method}_write_p99_ms": statistics.median(each.p99 for each in taken[method]) * 1000 for method in taken
    }


def _measure(command: list[str], size: int) -> Taken:
    with _writing() as times, tempfile.TemporaryFile() as output:
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, code, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
        seconds = time.monotonic() - started
        if process.returncode != 0:
            output.seek(0)
            raise SandboxError(f"{command[0]} failed: {output.read()[-500:].decode(errors='replace')}")
    return Taken(seconds, size, used.ru_maxrss * 1024, statistics.quantiles(times, n=100)[98])


@contextmanager
def _writing() -> Iterator[list[float]]:
    """Write in the background and yield the list of write durations in seconds."""
    times: list[float] = []
    stop = threading.Event()

    def write() -> None:
        with _client() as client:
            while not stop.is_set():
                began = time.monotonic()
                client.put("concurrent-write", "x" * 100)
                times.append(time.monotonic() - began)
                stop.wait(0.005)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield times
    finally:
        stop.set()
        writer.join()


def _etcdctl(target: Path) -> list[str]:
    program = str(parts.etcd_binary(_VERSION, "etcdctl"))
    return [program, f"--endpoints=http://127.0.0.1:{_ETCD}", "snapshot", "save", str(target)]


def _to_store(folder: Path, store: str, number: int) -> list[str]:
    return _snapshot_module(folder, f"s3://bench/ours-{number}.db", _STORES[store][0])


def _snapshot_module(folder: Path, target: str, port: int = 0) -> list[str]:
    arguments = {
        "endpoints": [f"http://127.0.0.1:{_ETCD}"],
        "dest": target,
        "check": False,  # another container of the Job checks the snapshot
        "s3_endpoint": f"https://127.0.0.1:{port}",
        "s3_path_style": True,
        "s3_ca_cert": str(folder / "ca.crt"),
        "s3_access_key": "bench",
        "s3_secret_key": "bench-bench",
    }
    path = folder / "arguments.json"
    path.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
    return [sys.executable, "-m", _MODULE, str(path)]


@contextmanager
def _etcd(folder: Path) -> Iterator[None]:
    client, peer = f"http://127.0.0.1:{_ETCD}", f"http://127.0.0.1:{_PEER}"
    command = [
        str(parts.etcd_binary(_VERSION)),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--quota-backend-bytes=8589934592",
        "--log-level=error",
    ]
    with _running(command, {}, folder / "etcd.log"):
        wait_for("etcd to be healthy", _is_healthy, timeout=30)
        yield


@contextmanager
def _store(folder: Path, name: str, port: int, options: tuple[str, ...]) -> Iterator[None]:
    (folder / name / "bench").mkdir(parents=True)
    command = [
        str(parts.binary("versitygw", "versitygw")),
        f"--port=127.0.0.1:{port}",
        f"--cert={folder / 'server.crt'}",
        f"--key={folder / 'server.key'}",
        "--quiet",
        "posix",
        *options,
        str(folder / name),
    ]
    with _running(command, {"ROOT_ACCESS_KEY": "bench", "ROOT_SECRET_KEY": "bench-bench"}, folder / f"{name}.log"):
        time.sleep(1)
        yield


def _certificates(folder: Path) -> None:
    ca = pki.make_ca("bench")
    ca.write(folder / "ca")
    pki.make_leaf(ca, "s3", names=("127.0.0.1",)).write(folder / "server")


@contextmanager
def _running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=os.environ | environment, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _client() -> Client:
    return Client(Endpoint(f"http://127.0.0.1:{_ETCD}"), timeout=30)


def _is_healthy() -> bool:
    try:
        with _client() as client:
            client.health()
    except EtcdError:
        return False
    return True


def _fill(size: int) -> None:
    """Fill etcd with random values of this total size."""
    with _client() as client:
        for number in range(size // _VALUE):
            client.put(f"key-{number}", os.urandom(_VALUE // 2).hex())
