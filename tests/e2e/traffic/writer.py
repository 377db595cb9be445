"""Write numbered keys through a cluster's client Service, and find acknowledged writes that were lost.

    python -m tests.e2e.traffic.writer start NAMESPACE CLUSTER    in the background, until …
    python -m tests.e2e.traffic.writer end NAMESPACE CLUSTER      … here: reads the keys back, fails if one differs

A key is written once and never retried, so a failed request may or may not have been applied; an acknowledged one must
be there, once. The client is etcd3gw, an independent one.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import requests
from etcd3gw.client import Etcd3Client
from etcd3gw.exceptions import Etcd3Exception
from requests.adapters import HTTPAdapter

from sandbox import cluster as sandbox
from sandbox import command, layout
from sandbox.errors import SandboxError
from sandbox.run import wait_for

from . import background

STREAMS = 3  # concurrent, each with its own connection
_EVERY = 0.1  # seconds between two writes of a stream
_AFTER_FAILURE = 0.02
_TIMEOUT = 0.5  # short: a client that waits for a dead member does not use the others
_NEW_CONNECTION = 20  # writes; a Service chooses a member for a connection, not for a request
_AT_MOST = 1800.0  # seconds; a forgotten writer ends by itself


@dataclass(frozen=True)
class Found:
    """A key as it was read back."""

    value: str
    version: int
    create_revision: int
    mod_revision: int


@dataclass(frozen=True)
class Report:
    acknowledged: int
    failed: int
    longest_gap_s: float  # between two acknowledged writes
    failures: dict[str, int]  # number of failures by message


def violations(
    tried: Collection[int], acknowledged: Collection[int], found: Mapping[int, Found], run: str
) -> list[str]:
    """Violations: writes that are lost, changed, applied twice, or were never sent."""
    lost = sorted(set(acknowledged) - set(found))
    problems = [f"acknowledged and lost: {number}" for number in lost]
    for number, each in sorted(found.items()):
        if number not in tried:
            problems.append(f"never written: {number}")
        elif each.value != value(run, number):
            problems.append(f"not as written: {number} is {each.value!r}")
        elif each.version != 1 or each.create_revision != each.mod_revision:
            problems.append(f"written twice: {number} (version {each.version})")
    return problems


def longest_gap(times: Collection[float], ended: float) -> float:
    """Seconds between two acknowledged writes, or between the last one and the end."""
    return max((after - before for before, after in itertools.pairwise([*sorted(times), ended])), default=0.0)


def prefix(run: str) -> str:
    return f"/writer/{run}/"


def value(run: str, number: int) -> str:
    return f"write {number} of {run}"


def start(namespace: str, cluster: str) -> None:
    """Start a writer in the background; returns when its first write is acknowledged."""
    folder = _folder(namespace, cluster)
    background.fresh(folder)
    get = _getter(namespace)
    for name, text in get("secret", f"{cluster}-client-tls")["data"].items():
        (folder / name).write_bytes(base64.b64decode(text))
    (folder / "run").write_text(f"{time.time_ns():x}")
    (folder / "address").write_text(get("service", f"{cluster}-client")["spec"]["clusterIP"])
    (folder / "name").write_text(f"{cluster}-client.{namespace}.svc")
    background.start("tests.e2e.traffic.writer", folder)
    wait_for("the first write to be acknowledged", lambda: bool(_lines(folder / "acknowledged")), timeout=30)


def end(namespace: str, cluster: str) -> Report:
    """End the writer and check all that it wrote; SandboxError lists the violations."""
    folder = _folder(namespace, cluster)
    background.end(folder)
    run = (folder / "run").read_text()
    acknowledged = {int(number): float(at) for number, at in _lines(folder / "acknowledged")}
    failed = {int(number): why for number, why in _lines(folder / "failed")}
    report = Report(
        acknowledged=len(acknowledged),
        failed=len(failed),
        longest_gap_s=round(longest_gap(acknowledged.values(), float((folder / "ended").read_text())), 3),
        failures=dict(Counter(failed.values()).most_common(5)),
    )
    if problems := violations([*acknowledged, *failed], acknowledged, _read_back(folder, run), run):
        more = f" … and {len(problems) - 10} more" if len(problems) > 10 else ""
        raise SandboxError(f"{'; '.join(problems[:10])}{more}. {report}")
    (folder / "report").write_text(f"{json.dumps(asdict(report))}\n")
    return report


def _getter(namespace: str) -> Any:
    def get(kind: str, name: str) -> Any:
        return json.loads(sandbox.kubectl("get", kind, name, f"--namespace={namespace}", "--output=json"))

    return get


def _folder(namespace: str, cluster: str) -> Path:
    return layout.REPOSITORY / ".build/writer" / f"{namespace}-{cluster}"


def _lines(path: Path) -> list[list[str]]:
    try:
        return [line.split(" ", 1) for line in path.read_text().splitlines()]
    except FileNotFoundError:
        return []


def _read_back(folder: Path, run: str) -> dict[int, Found]:
    found: dict[int, Found] = {}

    def read() -> bool:
        try:
            answer = _client(folder, timeout=30).get_prefix(prefix(run))
        except (Etcd3Exception, requests.RequestException):
            return False
        for text, meta in answer:
            revisions = (int(meta["version"]), int(meta["create_revision"]), int(meta["mod_revision"]))
            found[int(meta["key"].decode().removeprefix(prefix(run)))] = Found(text.decode(), *revisions)
        return True

    wait_for("the keys to be read back", read, timeout=60, every=0.5)
    return found


class _Named(HTTPAdapter):
    """Dials an address and verifies the certificate of a name: this machine does not use the cluster's DNS."""

    def __init__(self, name: str) -> None:
        self._name = name
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options, server_hostname=self._name, assert_hostname=self._name)


def _client(folder: Path, timeout: float = _TIMEOUT) -> Etcd3Client:
    session = requests.Session()
    session.trust_env = False
    session.verify = str(folder / "ca.crt")
    session.cert = (str(folder / "tls.crt"), str(folder / "tls.key"))
    session.mount("https://", _Named((folder / "name").read_text()))
    address = (folder / "address").read_text()
    return Etcd3Client(address, protocol="https", timeout=timeout, api_path="/v3/", session=session)


class _Journal:
    """Records each write before the next one of its stream begins."""

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        self._acknowledged = (folder / "acknowledged").open("w", buffering=1)
        self._failed = (folder / "failed").open("w", buffering=1)

    def acknowledged(self, number: int) -> None:
        with self._lock:
            print(number, time.monotonic(), file=self._acknowledged)

    def failed(self, number: int, why: str) -> None:
        with self._lock:
            print(number, why, file=self._failed)


def _run(folder: Path) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    journal, numbers, run = _Journal(folder), itertools.count(1), (folder / "run").read_text()
    streams = [threading.Thread(target=_stream, args=(folder, run, numbers, journal, stop)) for _ in range(STREAMS)]
    for stream in streams:
        stream.start()
    stop.wait(_AT_MOST)
    (folder / "ended").write_text(str(time.monotonic()))
    stop.set()
    for stream in streams:
        stream.join()


def _stream(folder: Path, run: str, numbers: Iterator[int], journal: _Journal, stop: threading.Event) -> None:
    while not stop.is_set():
        client = _client(folder)
        for number in itertools.islice(numbers, _NEW_CONNECTION):
            try:
                client.put(f"{prefix(run)}{number}", value(run, number))
            except (Etcd3Exception, requests.RequestException) as error:
                journal.failed(number, short_reason(error))
                stop.wait(_AFTER_FAILURE)
                break  # another connection
            journal.acknowledged(number)
            if stop.wait(_EVERY):
                break
        client.session.close()


def short_reason(error: Exception) -> str:
    """A short reason: etcd's message, or the last cause of a chain."""
    text = str(getattr(error, "detail_text", "") or error)
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        causes = re.findall(r"\w+(?:Error|Disconnected)|timed out|\[Errno \d+\] [\w ]+", text)
        return causes[-1] if causes else type(error).__name__


def main() -> None:
    match sys.argv[1:]:
        case ["start", namespace, cluster]:
            start(namespace, cluster)
        case ["end", namespace, cluster]:
            print(json.dumps(asdict(end(namespace, cluster))))
        case ["run", folder]:
            _run(Path(folder))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    command.run("writer", main)
