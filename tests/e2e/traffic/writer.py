"""Write, read, delete and swap keys through a cluster's client Service, and check the whole history.

    python -m tests.e2e.traffic.writer start NAMESPACE CLUSTER    in the background, until …
    python -m tests.e2e.traffic.writer end NAMESPACE CLUSTER      … here: reads all keys back, fails on a violation

An operation is never retried, so one that failed may or may not have been executed. `checks/history.py` says what must
hold. The client is etcd3gw, an independent one.
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
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
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

from ..checks import history
from . import background, operations
from .operations import Operation

STREAMS = 3  # concurrent, each with its own connection
_EVERY = 0.1  # seconds between two operations of a stream
_AFTER_FAILURE = 0.02
_TIMEOUT = 0.5  # short: a client that waits for a dead member does not use the others
_NEW_CONNECTION = 20  # operations; a Service chooses a member for a connection, not for a request
_AT_MOST = 4500.0  # seconds; a forgotten writer ends by itself


@dataclass(frozen=True)
class Report:
    acknowledged: int  # operations
    failed: int
    longest_gap_s: float  # between two acknowledged writes
    failures: dict[str, int]  # number of failures by message


def longest_gap(times: Collection[float], ended: float) -> float:
    """Seconds between two acknowledged writes, or between the last one and the end."""
    return max((after - before for before, after in itertools.pairwise([*sorted(times), ended])), default=0.0)


def prefix(run: str) -> str:
    return f"/writer/{run}/"


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
    wait_for("the first write to be acknowledged", lambda: any(each.changed for each in _history(folder)), timeout=30)


def end(namespace: str, cluster: str) -> Report:
    """End the writer and check all that it did; SandboxError lists the violations."""
    folder = _folder(namespace, cluster)
    background.end(folder)
    seen, ended = _history(folder), float((folder / "ended").read_text())
    failed = [each for each in seen if each.failure]
    report = Report(
        acknowledged=len(seen) - len(failed),
        failed=len(failed),
        longest_gap_s=round(longest_gap([each.end for each in seen if each.changed], ended), 3),
        failures=dict(Counter(each.failure for each in failed).most_common(5)),
    )
    if problems := history.violations([*seen, *_read_back(folder, seen)]):
        more = f" … and {len(problems) - 10} more" if len(problems) > 10 else ""
        raise SandboxError(f"{'; '.join(problems[:10])}{more}. {report}")
    (folder / "report").write_text(f"{json.dumps(asdict(report))}\n")
    return report


def abandon(namespace: str, cluster: str) -> None:
    """End the writer, if it runs, and check nothing."""
    with suppress(SandboxError):
        background.end(_folder(namespace, cluster))


def _getter(namespace: str) -> Any:
    def get(kind: str, name: str) -> Any:
        return json.loads(sandbox.kubectl("get", kind, name, f"--namespace={namespace}", "--output=json"))

    return get


def _folder(namespace: str, cluster: str) -> Path:
    return layout.REPOSITORY / ".build/writer" / f"{namespace}-{cluster}"


def _history(folder: Path) -> list[Operation]:
    try:
        return [operations.from_line(line) for line in (folder / "history").read_text().splitlines()]
    except FileNotFoundError:
        return []


def _read_back(folder: Path, seen: list[Operation]) -> list[Operation]:
    where = prefix((folder / "run").read_text())
    found: list[Operation] = []

    def read() -> bool:
        try:
            answer = _ask(_client(folder, timeout=30), "/kv/range", operations.range_over(where))
        except (Etcd3Exception, requests.RequestException):
            return False
        found.extend(operations.read_back(seen, where, answer, time.monotonic()))
        return True

    wait_for("the keys to be read back", read, timeout=60, every=0.5)
    return found


def _ask(client: Etcd3Client, path: str, body: operations.Json) -> operations.Json:
    answer: operations.Json = client.post(client.get_url(path), json=body)
    return answer


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
    """Records each operation before the next one of its stream begins."""

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        self._file = (folder / "history").open("w", buffering=1)

    def record(self, done: Operation) -> None:
        with self._lock:
            print(operations.line(done), file=self._file)


def _run(folder: Path) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    journal, numbers = _Journal(folder), itertools.count(1)
    streams = [threading.Thread(target=_stream, args=(folder, numbers, journal, stop)) for _ in range(STREAMS)]
    for stream in streams:
        stream.start()
    stop.wait(_AT_MOST)
    (folder / "ended").write_text(str(time.monotonic()))
    stop.set()
    for stream in streams:
        stream.join()


def _stream(folder: Path, numbers: Iterator[int], journal: _Journal, stop: threading.Event) -> None:
    where = prefix((folder / "run").read_text())
    known: dict[str, int] = {}  # by key, the revision of its last write as far as this stream knows
    while not stop.is_set():
        client = _client(folder)
        for number in itertools.islice(numbers, _NEW_CONNECTION):
            done = _execute(client, operations.operation(number, where, known))
            journal.record(done)
            if done.failure:
                stop.wait(_AFTER_FAILURE)
                break  # another connection
            known[done.key] = operations.last_write(done)
            if stop.wait(_EVERY):
                break
        client.session.close()


def _execute(client: Etcd3Client, asked: Operation) -> Operation:
    path, body = operations.request(asked)
    asked = replace(asked, start=time.monotonic())
    try:
        answer = _ask(client, path, body)
    except (Etcd3Exception, requests.RequestException) as error:
        return replace(asked, end=time.monotonic(), failure=short_reason(error))
    return operations.answered(replace(asked, end=time.monotonic()), answer)


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
