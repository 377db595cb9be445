"""Take something from members: python -m tests.e2e.faults.lose NAMESPACE CLUSTER WHAT WHO

WHAT  pod        the pod is deleted
      phase      the kubelet ends the pod, which stays as Failed, as after an eviction or a node's shutdown
      claim      the PVC and the pod are deleted
      data       the data directory is emptied while etcd runs, and etcd is killed
      database   the same with pages of the database flipped
      log        the same with the newest WAL file truncated to zero
      tail       the same with the second half of that file cut off: etcd notices when the leader's commit index is
                 beyond its log, or a new leader sends it the missing entries
      membership the member is removed with etcdctl
      off, freeze, cut, gone   the member's node; gone: off, and its Node object is deleted
WHO   leader, follower, two (followers), all; for a node: one that has a single member, the leader's if possible

Returns when Kubernetes has observed it. Prints, as JSON, the members (`lost`), the node (`node`), and the log of etcd
when it was started without data (`log`).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sandbox import cluster as sandbox
from sandbox import command, faults, layout
from sandbox.errors import SandboxError
from sandbox.run import wait_for

from ..checks import baseline
from ..checks.observed import Observed, Pod, api, etcdctl, observe
from ..fixtures.containers import first_process

_PAGE = 4096
_KEEPS_DATA = {"pod", "phase"}  # unless storage is Memory
_NODE = {"off": "off", "freeze": "freeze", "cut": "cut", "gone": "off"}


def lose(namespace: str, name: str, what: str, who: str) -> dict[str, Any]:
    """Inject the fault; returns what main() prints."""
    seen = observe(api(), namespace, name)
    victims = [_alone(namespace, seen)] if what in _NODE else _choose(namespace, seen, who)
    names = [victim.name for victim in victims]
    if what == "tail":
        baseline.uncertain(seen.resource["metadata"]["uid"], names)
    elif not _keeps_data(seen, what):
        baseline.lost(seen.resource["metadata"]["uid"], names)
    if what in _NODE:
        faults.ACTIONS[_NODE[what]](victims[0].node)
        if what == "gone":
            sandbox.kubectl("delete", "node", victims[0].node)
        return {"lost": names, "node": victims[0].node}
    _DO[what](namespace, seen, victims)
    log = _log(namespace, victims[0]) if what == "data" else ""
    wait_for("Kubernetes to observe it", lambda: _is_observed(namespace, name, what, victims), timeout=60, every=0.05)
    return {"lost": names, "log": log}


def _keeps_data(seen: Observed, what: str) -> bool:
    """A pod keeps its data unless it is in memory; and a volume that floats outlives the node that it was used on."""
    floats = what == "gone" and seen.resource["spec"].get("storage", {}).get("className") == "floating"
    return floats or (what in _KEEPS_DATA and seen.is_persistent)


def leader(namespace: str, seen: Observed) -> Pod:
    """The leader according to any ready member."""
    problems: list[str] = []
    for pod in (pod for pod in seen.pods if pod.ready and not pod.deleting):
        try:
            (status,) = etcdctl(namespace, pod.name, "endpoint", "status")
            members = etcdctl(namespace, pod.name, "member", "list")["members"]
        except SandboxError as error:
            problems.append(str(error))
            continue
        names = {member["ID"]: member.get("name", "") for member in members}
        name = names.get(status["Status"]["leader"], "")
        if found := next((pod for pod in seen.pods if pod.name == name), None):
            return found
        problems.append(f"{pod.name} knows no leader")
    raise SandboxError(f"No member leads: {problems}")


def _choose(namespace: str, seen: Observed, who: str) -> list[Pod]:
    leads = leader(namespace, seen)
    followers = [pod for pod in sorted(seen.pods, key=lambda pod: pod.name) if pod != leads]
    return {"leader": [leads], "follower": followers[:1], "two": followers[:2], "all": [leads, *followers]}[who]


def _alone(namespace: str, seen: Observed) -> Pod:
    """A member that is alone on its node: without it there is still a quorum."""
    members = Counter(pod.node for pod in seen.pods)
    leads = leader(namespace, seen)
    alone = [pod for pod in (leads, *seen.pods) if members[pod.node] == 1]
    if not alone:
        raise SandboxError(f"Every node has more than one member: {dict(members)}")
    return alone[0]


def _is_observed(namespace: str, name: str, what: str, victims: list[Pod]) -> bool:
    if what == "membership":
        return True
    now = {pod.name: pod for pod in observe(api(), namespace, name).pods}
    return all(
        victim.name not in now
        or (now[victim.name].uid, now[victim.name].restarts) != (victim.uid, victim.restarts)
        or now[victim.name].deleting
        for victim in victims
    )


def _pod(namespace: str, _: Observed, victims: list[Pod]) -> None:
    # Without waiting: kubectl may wait for the pod that replaces the deleted one. _is_observed compares uids.
    sandbox.kubectl("delete", "pod", f"--namespace={namespace}", "--wait=false", *(victim.name for victim in victims))


def _phase(namespace: str, _: Observed, victims: list[Pod]) -> None:
    for victim in victims:
        patch = json.dumps({"spec": {"activeDeadlineSeconds": 1}})
        sandbox.kubectl("patch", "pod", f"--namespace={namespace}", victim.name, f"--patch={patch}")


def _claim(namespace: str, seen: Observed, victims: list[Pod]) -> None:
    claims = [f"data-{victim.name}" for victim in victims]
    sandbox.kubectl("delete", "pvc", f"--namespace={namespace}", "--wait=false", *claims)
    _pod(namespace, seen, victims)


def _membership(namespace: str, seen: Observed, victims: list[Pod]) -> None:
    ids = {member["name"]: member["id"] for member in seen.status["members"]}
    other = next(pod for pod in seen.pods if pod not in victims)
    for victim in victims:
        remove = partial(_removed, namespace, other.name, ids[victim.name])
        wait_for(f"etcd to remove {victim.name}", remove, timeout=30, every=0.5)


def _removed(namespace: str, pod: str, member: str) -> bool:
    """For five seconds after a member joined, etcd refuses to remove one."""
    try:
        etcdctl(namespace, pod, "member", "remove", member)
    except SandboxError as error:
        if "unhealthy cluster" in str(error):
            return False
        raise
    return True


def _killed(damage: Callable[[Path], None]) -> Callable[[str, Observed, list[Pod]], None]:
    """Damage the files of a stopped etcd, so that it can't write them again, and kill it."""

    def do(namespace: str, _: Observed, victims: list[Pod]) -> None:
        for victim in victims:
            etcd, folder = first_process(victim.container), _volume(namespace, victim) / "data/member"
            os.kill(etcd, signal.SIGSTOP)
            wait_for(f"{victim.name} to stop", lambda pid=etcd: _is_stopped(pid), timeout=5, every=0.01)  # type: ignore[misc]
            try:
                damage(folder)
            finally:
                os.kill(etcd, signal.SIGKILL)

    return do


def _is_stopped(pid: int) -> bool:
    return all(
        (task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in Path(f"/proc/{pid}/task").iterdir()
    )


def _volume(namespace: str, victim: Pod) -> Path:
    where = (f"--namespace={namespace}", f"data-{victim.name}", "--output=jsonpath={.spec.volumeName}")
    volume = sandbox.kubectl("get", "pvc", *where)
    return Path(sandbox.kubectl("get", "pv", volume, "--output=jsonpath={.spec.local.path}"))


def empty(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
    folder.rmdir()


def flip(folder: Path) -> None:
    """Flip every bit of the database's first pages."""
    with (folder / "snap/db").open("r+b") as file:
        pages = file.read(8 * _PAGE)
        file.seek(0)
        file.write(bytes(byte ^ 0xFF for byte in pages))


def cut_all(folder: Path) -> None:
    os.truncate(_newest_log(folder), 0)


def cut_half(folder: Path) -> None:
    """Cut off half of what was written; etcd preallocates space beyond that."""
    newest = _newest_log(folder)
    os.truncate(newest, len(newest.read_bytes().rstrip(b"\0")) // 2)


def _newest_log(folder: Path) -> Path:
    return max((folder / "wal").glob("*.wal"))


_DO: dict[str, Callable[[str, Observed, list[Pod]], None]] = {
    "pod": _pod,
    "phase": _phase,
    "claim": _claim,
    "membership": _membership,
    "data": _killed(empty),
    "database": _killed(flip),
    "log": _killed(cut_all),
    "tail": _killed(cut_half),
}


def _log(namespace: str, victim: Pod) -> str:
    """The log of the next container. A repair soon deletes the pod and its log, so the file is kept open."""
    folder = layout.STATE / "hosts" / victim.node / "pod-logs" / f"{namespace}_{victim.name}_{victim.uid}" / "etcd"
    path = folder / f"{victim.restarts + 1}.log"
    wait_for(f"{victim.name} to be started again", path.exists, timeout=60, every=0.02)
    text, end = "", time.monotonic() + 30
    with path.open() as log:
        while '"level":"fatal"' not in text and time.monotonic() < end:
            text += log.read()
            time.sleep(0.1)
    return text


def main() -> None:
    match sys.argv[1:]:
        case [namespace, name, what, *who]:
            print(json.dumps(lose(namespace, name, what, *(who or [""]))))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    command.run("lose", main)
