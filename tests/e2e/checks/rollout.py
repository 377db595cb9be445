"""Watch which members restart and which one leads, by asking etcd and the API server, not the operator.

    python -m tests.e2e.checks.rollout start NAMESPACE CLUSTER        in the background, until …
    python -m tests.e2e.checks.rollout end NAMESPACE CLUSTER          … here: fails unless it was a rolling restart
    python -m tests.e2e.checks.rollout end NAMESPACE CLUSTER none     … fails if any member restarted

Rolling restart: every member restarts once, each after the one before is healthy again, the leader last.
"""

from __future__ import annotations

import base64
import itertools
import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.client import Client
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.endpoint import Endpoint, Tls
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.fanout import ask_all
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Status
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube, KubeError
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from sandbox import command, layout
from sandbox.errors import SandboxError
from sandbox.run import wait_for

from ..traffic import background
from .observed import api

_EVERY = 0.15  # seconds between two samples
_AT_MOST = 1800.0  # seconds; a forgotten watcher ends by itself


@dataclass(frozen=True)
class Sample:
    """The cluster at one moment."""

    at: float
    pods: Mapping[str, str]  # name → uid and restarts, of pods that are not being deleted
    healthy: Mapping[str, str]  # name → version, of members that answer and know a leader
    leader: str = ""  # its pod; empty when no member says that it leads


@dataclass(frozen=True)
class Restart:
    """A pod that ended, and the next healthy one of its name."""

    name: str
    began: float
    ended: float | None  # None: not healthy yet
    leader: str  # just before


@dataclass(frozen=True)
class Report:
    order: list[str]
    first_leader: str
    leader_changes: int
    seconds: float  # from the end of the first pod until the last one is healthy
    versions: dict[str, str]  # at the end


def restarts(samples: Sequence[Sample]) -> list[Restart]:
    """Restarts in the order in which they began."""
    found: list[Restart] = []
    known: dict[str, str] = {}  # the pod that was last healthy
    restarting: dict[str, tuple[float, str]] = {}
    leader = ""
    for sample in samples:
        for name in sorted({*known, *sample.pods}):
            pod = sample.pods.get(name)
            if name in known and pod != known[name] and name not in restarting:
                restarting[name] = (sample.at, leader)
            if pod is None or name not in sample.healthy:
                continue
            if name in restarting and pod != known[name]:
                began, led = restarting.pop(name)
                found.append(Restart(name, began, sample.at, led))
            known[name] = pod
        leader = sample.leader or leader
    found += [Restart(name, began, None, led) for name, (began, led) in restarting.items()]
    return sorted(found, key=lambda restart: restart.began)


def violations(samples: Sequence[Sample]) -> list[str]:
    """How the restarts differ from a rolling restart."""
    seen, first = restarts(samples), samples[0]
    often = Counter(restart.name for restart in seen)
    problems = [f"{name} was restarted {often[name]} times" for name in sorted(first.pods) if often[name] != 1]
    problems += [f"{name} is not healthy again" for name in sorted(r.name for r in seen if r.ended is None)]
    for one, other in itertools.pairwise(seen):
        if one.ended is None or one.ended > other.began:
            problems.append(f"{other.name} was restarted before {one.name} was healthy again")
        if one.leader == one.name:
            problems.append(f"{one.name} was the leader and was restarted before {other.name}")
    if len(seen) > 1 and seen[-2].leader != seen[-1].name:
        problems.append(f"{seen[-1].name} was the last, but {seen[-2].leader} was the leader before")
    return problems


def report(samples: Sequence[Sample]) -> Report:
    seen = restarts(samples)
    ended = [restart.ended for restart in seen if restart.ended is not None]
    return Report(
        order=[restart.name for restart in seen],
        first_leader=next((sample.leader for sample in samples if sample.leader), ""),
        leader_changes=leader_changes(sample.leader for sample in samples),
        seconds=round(max(ended) - seen[0].began, 2) if ended else 0.0,
        versions=dict(samples[-1].healthy),
    )


def leader_changes(leaders: Iterable[str]) -> int:
    known = [leader for leader in leaders if leader]
    return sum(one != other for one, other in itertools.pairwise(known))


def leader_of(answers: Mapping[str, Status]) -> str:
    """The member that says it leads; of several, the one with the latest term."""
    claims = {name: status for name, status in answers.items() if status.leader_id == status.member_id}
    return max(claims, key=lambda name: claims[name].raft_term, default="")


def start(namespace: str, cluster: str) -> None:
    """Start sampling; returns when every member was healthy once."""
    folder = _folder(namespace, cluster)
    background.fresh(folder)
    secret = api().get("Secret", namespace, f"{cluster}-client-tls")
    if secret is None:
        raise SandboxError(f"There is no Secret {cluster}-client-tls in {namespace}.")
    for name, text in secret["data"].items():
        (folder / name).write_bytes(base64.b64decode(text))
    (folder / "where").write_text(json.dumps([namespace, cluster]))
    background.start("tests.e2e.checks.rollout", folder)
    wait_for("every member to be healthy", lambda: _all_healthy(folder), timeout=30)


def end(namespace: str, cluster: str, *, none: bool) -> Report:
    """Stop sampling; SandboxError lists the violations."""
    folder = _folder(namespace, cluster)
    background.end(folder)
    samples = _samples(folder)
    samples = samples[next((number for number, sample in enumerate(samples) if _is_healthy(sample)), 0) :]
    problems = [f"{restart.name} was restarted" for restart in restarts(samples)] if none else violations(samples)
    found = report(samples)
    if problems:
        raise SandboxError(f"{'; '.join(problems)}. {found}")
    return found


def _is_healthy(sample: Sample) -> bool:
    return bool(sample.leader) and set(sample.healthy) == set(sample.pods)


def _all_healthy(folder: Path) -> bool:
    return any(_is_healthy(sample) for sample in _samples(folder))


def _folder(namespace: str, cluster: str) -> Path:
    return layout.REPOSITORY / ".build/rollout" / f"{namespace}-{cluster}"


def _samples(folder: Path) -> list[Sample]:
    try:
        lines = (folder / "samples").read_text().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    return [Sample(**json.loads(line)) for line in lines if line.endswith("\n")]


def _run(folder: Path) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    namespace, cluster = json.loads((folder / "where").read_text())
    tls = Tls(str(folder / "ca.crt"), str(folder / "tls.crt"), str(folder / "tls.key"))
    kube, clients, ends = api(), dict[str, Client](), time.monotonic() + _AT_MOST
    with (folder / "samples").open("w", buffering=1) as samples:
        while not stop.wait(_EVERY) and time.monotonic() < ends:
            try:
                found = _sample(kube, clients, tls, namespace, cluster)
            except KubeError:  # a busy API server is asked again
                kube = api()
                continue
            print(json.dumps(asdict(found)), file=samples)


def _sample(kube: Kube, clients: dict[str, Client], tls: Tls, namespace: str, cluster: str) -> Sample:
    pods = {
        pod["metadata"]["name"]: pod
        for pod in kube.list("Pod", namespace, f"etcdops.dev/cluster={cluster}")
        if "deletionTimestamp" not in pod["metadata"]
    }
    names = [name for name, pod in pods.items() if _address(pod)]
    asked = [_client(clients, tls, namespace, cluster, pods[name]) for name in names]
    answers = {
        name: answer
        for name, answer in zip(names, ask_all(asked, Client.status, deadline=1.0), strict=True)
        if not isinstance(answer, EtcdError)
    }
    return Sample(
        at=time.monotonic(),
        pods={name: _incarnation(pod) for name, pod in pods.items()},
        healthy={name: status.version for name, status in answers.items() if status.leader_id},
        leader=leader_of(answers),
    )


def _client(clients: dict[str, Client], tls: Tls, namespace: str, cluster: str, pod: Manifest) -> Client:
    """One client per pod and address, so that its connection is reused."""
    key = f"{pod['metadata']['uid']} {_address(pod)}"
    if key not in clients:
        url = f"https://{pod['metadata']['name']}.{cluster}-peers.{namespace}.svc:2379"
        clients[key] = Client(Endpoint(url, _address(pod)), tls, timeout=0.8)
    return clients[key]


def _incarnation(pod: Manifest) -> str:
    containers = pod.get("status", {}).get("containerStatuses", [])
    return f"{pod['metadata']['uid']} {sum(container.get('restartCount', 0) for container in containers)}"


def _address(pod: Manifest) -> str:
    address: Any = pod.get("status", {}).get("podIP", "")
    return str(address)


def main() -> None:
    match sys.argv[1:]:
        case ["start", namespace, cluster]:
            start(namespace, cluster)
        case ["end", namespace, cluster, *expected] if expected in ([], ["none"]):
            print(json.dumps(asdict(end(namespace, cluster, none=bool(expected)))))
        case ["run", folder]:
            _run(Path(folder))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    command.run("rollout", main)
