"""Watches who is restarted and who leads, asking etcd and the API server and not the operator.

    python -m proof.roll start NAMESPACE CLUSTER        in the background, until …
    python -m proof.roll end NAMESPACE CLUSTER          … here: fails unless it was a roll
    python -m proof.roll end NAMESPACE CLUSTER nobody   … fails if anybody was restarted

A roll: every member is restarted once, each when the one before serves again, and last the one that leads.
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

from sandbox import layout
from sandbox.errors import SandboxError
from sandbox.run import wait_for

from . import background
from .seen import api

_EVERY = 0.15  # seconds between two looks
_AT_MOST = 1800.0  # seconds; one that is forgotten ends by itself


@dataclass(frozen=True)
class Look:
    """One moment."""

    at: float
    pods: Mapping[str, str]  # name → uid and restarts, of those that are not being deleted
    serving: Mapping[str, str]  # name → version, of those that answer and know who leads
    leader: str = ""  # its pod; empty when nobody says that it leads


@dataclass(frozen=True)
class Restart:
    """A pod that went, and the one of its name that served next."""

    name: str
    began: float
    ended: float | None  # it does not serve yet
    leader: str  # who led just before


@dataclass(frozen=True)
class Report:
    order: list[str]
    first_led: str
    hand_overs: int  # how often another one led than before
    seconds: float  # from the first pod's end until the last one served
    versions: dict[str, str]  # at the end


def restarts(looks: Sequence[Look]) -> list[Restart]:
    """In the order in which they began."""
    found: list[Restart] = []
    known: dict[str, str] = {}  # which pod it was when it last served
    open_since: dict[str, tuple[float, str]] = {}
    leader = ""
    for look in looks:
        for name in sorted({*known, *look.pods}):
            pod = look.pods.get(name)
            if name in known and pod != known[name] and name not in open_since:
                open_since[name] = (look.at, leader)
            if pod is None or name not in look.serving:
                continue
            if name in open_since and pod != known[name]:
                began, led = open_since.pop(name)
                found.append(Restart(name, began, look.at, led))
            known[name] = pod
        leader = look.leader or leader
    found += [Restart(name, began, None, led) for name, (began, led) in open_since.items()]
    return sorted(found, key=lambda restart: restart.began)


def wrong(looks: Sequence[Look]) -> list[str]:
    """What must not be in a roll."""
    seen, first = restarts(looks), looks[0]
    often = Counter(restart.name for restart in seen)
    said = [f"{name} was restarted {often[name]} times" for name in sorted(first.pods) if often[name] != 1]
    said += [f"{name} is not back" for name in sorted(r.name for r in seen if r.ended is None)]
    for one, other in itertools.pairwise(seen):
        if one.ended is None or one.ended > other.began:
            said.append(f"{other.name} was restarted before {one.name} served again")
        if one.leader == one.name:
            said.append(f"{one.name} led and was restarted before {other.name}")
    if len(seen) > 1 and seen[-2].leader != seen[-1].name:
        said.append(f"{seen[-1].name} was the last, and {seen[-2].leader} led before")
    return said


def report(looks: Sequence[Look]) -> Report:
    seen = restarts(looks)
    ended = [restart.ended for restart in seen if restart.ended is not None]
    return Report(
        order=[restart.name for restart in seen],
        first_led=next((look.leader for look in looks if look.leader), ""),
        hand_overs=hand_overs(look.leader for look in looks),
        seconds=round(max(ended) - seen[0].began, 2) if ended else 0.0,
        versions=dict(looks[-1].serving),
    )


def hand_overs(leaders: Iterable[str]) -> int:
    known = [leader for leader in leaders if leader]
    return sum(one != other for one, other in itertools.pairwise(known))


def leads(answers: Mapping[str, Status]) -> str:
    """Who says that it leads; of several, the one with the latest term."""
    claims = {name: status for name, status in answers.items() if status.leader_id == status.member_id}
    return max(claims, key=lambda name: claims[name].raft_term, default="")


def start(namespace: str, cluster: str) -> None:
    """Start looking; returns when every member was seen once."""
    folder = _folder(namespace, cluster)
    background.fresh(folder)
    secret = api().get("Secret", namespace, f"{cluster}-client-tls")
    if secret is None:
        raise SandboxError(f"There is no Secret {cluster}-client-tls in {namespace}.")
    for name, text in secret["data"].items():
        (folder / name).write_bytes(base64.b64decode(text))
    (folder / "where").write_text(json.dumps([namespace, cluster]))
    background.start("proof.roll", folder)
    wait_for("every member to be seen", lambda: _all_seen(folder), timeout=30)


def end(namespace: str, cluster: str, *, nobody: bool) -> Report:
    """Stop looking; a SandboxError says what was not as it should be."""
    folder = _folder(namespace, cluster)
    background.end(folder)
    looks = _looks(folder)
    looks = looks[next((number for number, look in enumerate(looks) if _is_whole(look)), 0) :]
    said = [f"{restart.name} was restarted" for restart in restarts(looks)] if nobody else wrong(looks)
    found = report(looks)
    if said:
        raise SandboxError(f"{'; '.join(said)}. {found}")
    return found


def _is_whole(look: Look) -> bool:
    return bool(look.leader) and set(look.serving) == set(look.pods)


def _all_seen(folder: Path) -> bool:
    return any(_is_whole(look) for look in _looks(folder))


def _folder(namespace: str, cluster: str) -> Path:
    return layout.REPOSITORY / ".build/roll" / f"{namespace}-{cluster}"


def _looks(folder: Path) -> list[Look]:
    try:
        lines = (folder / "looks").read_text().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    return [Look(**json.loads(line)) for line in lines if line.endswith("\n")]


def _run(folder: Path) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    namespace, cluster = json.loads((folder / "where").read_text())
    tls = Tls(str(folder / "ca.crt"), str(folder / "tls.crt"), str(folder / "tls.key"))
    kube, clients, ends = api(), dict[str, Client](), time.monotonic() + _AT_MOST
    with (folder / "looks").open("w", buffering=1) as looks:
        while not stop.wait(_EVERY) and time.monotonic() < ends:
            try:
                found = _look(kube, clients, tls, namespace, cluster)
            except KubeError:  # a busy API server is asked again
                kube = api()
                continue
            print(json.dumps(asdict(found)), file=looks)


def _look(kube: Kube, clients: dict[str, Client], tls: Tls, namespace: str, cluster: str) -> Look:
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
    return Look(
        at=time.monotonic(),
        pods={name: _which(pod) for name, pod in pods.items()},
        serving={name: status.version for name, status in answers.items() if status.leader_id},
        leader=leads(answers),
    )


def _client(clients: dict[str, Client], tls: Tls, namespace: str, cluster: str, pod: Manifest) -> Client:
    """One for each pod, so that its connection is made once; a new one if its address is another."""
    key = f"{pod['metadata']['uid']} {_address(pod)}"
    if key not in clients:
        url = f"https://{pod['metadata']['name']}.{cluster}-peers.{namespace}.svc:2379"
        clients[key] = Client(Endpoint(url, _address(pod)), tls, timeout=0.8)
    return clients[key]


def _which(pod: Manifest) -> str:
    containers = pod.get("status", {}).get("containerStatuses", [])
    return f"{pod['metadata']['uid']} {sum(container.get('restartCount', 0) for container in containers)}"


def _address(pod: Manifest) -> str:
    address: Any = pod.get("status", {}).get("podIP", "")
    return str(address)


def main() -> None:
    match sys.argv[1:]:
        case ["start", namespace, cluster]:
            start(namespace, cluster)
        case ["end", namespace, cluster, *who] if who in ([], ["nobody"]):
            print(json.dumps(asdict(end(namespace, cluster, nobody=bool(who)))))
        case ["run", folder]:
            _run(Path(folder))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main()
    except SandboxError as problem:
        sys.exit(f"roll: {problem}")
