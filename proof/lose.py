"""Takes something from members: python -m proof.lose NAMESPACE CLUSTER WHAT WHO

WHAT  pod        the pod is deleted
      phase      the kubelet ends the pod, which stays behind as Failed, as after an eviction or a node's shutdown
      claim      the claim and the pod are deleted
      data       the data directory is emptied while etcd runs, and etcd is killed
      database   the same with pages of the database flipped
      log        the same with the newest file of the write-ahead log cut to nothing
      tail       the same with the second half of that file cut off: etcd notices when the leader tells it of more than
                 it has, or is silently filled up again by a new leader
      membership the member is removed with etcdctl
      off, freeze, cut, gone   the member's node; gone: off, and its Node object is deleted
WHO   leader, follower, two (followers), all; for a node: the one that has a single member, the leader's if it can be

Returns when Kubernetes has seen it. Prints, as JSON, who lost it (`lost`), the node (`node`), and what etcd said
when it was started without data (`said`).
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
from sandbox import faults, layout
from sandbox.errors import SandboxError
from sandbox.run import wait_for

from . import memory
from .seen import Pod, Seen, api, etcdctl, look

_PAGE = 4096
_KEEPS_DATA = {"pod", "phase"}  # but not in memory
_NODE = {"off": "off", "freeze": "freeze", "cut": "cut", "gone": "off"}


def lose(namespace: str, name: str, what: str, who: str) -> dict[str, Any]:
    """Do it; returns what main() prints."""
    seen = look(api(), namespace, name)
    victims = [_alone(namespace, seen)] if what in _NODE else _choose(namespace, seen, who)
    names = [victim.name for victim in victims]
    if what == "tail":
        memory.uncertain(seen.resource["metadata"]["uid"], names)
    elif what not in _KEEPS_DATA or not seen.is_persistent:
        memory.lost(seen.resource["metadata"]["uid"], names)
    if what in _NODE:
        faults.ACTIONS[_NODE[what]](victims[0].node)
        if what == "gone":
            sandbox.kubectl("delete", "node", victims[0].node)
        return {"lost": names, "node": victims[0].node}
    _DO[what](namespace, seen, victims)
    said = _said(namespace, victims[0]) if what == "data" else ""
    wait_for("Kubernetes to see it", lambda: _has_seen(namespace, name, what, victims), timeout=60, every=0.05)
    return {"lost": names, "said": said}


def process(container: str) -> int:
    """The first process of a container, as the machine sees it."""
    for path in Path("/proc").glob("[0-9]*") if container else ():
        try:
            if container in (path / "cgroup").read_text() and "\t1\n" in (path / "status").read_text():
                return int(path.name)  # NSpid ends in 1: it is the first one in its own namespace
        except (FileNotFoundError, ProcessLookupError):
            continue
    raise SandboxError(f"No process of container {container or '(none)'} runs on this machine.")


def leader(namespace: str, seen: Seen) -> Pod:
    """Who leads now, by etcd's own word: one member is asked, because another may be away just now."""
    said: list[str] = []
    for pod in (pod for pod in seen.pods if pod.ready and not pod.deleting):
        try:
            (status,) = etcdctl(namespace, pod.name, "endpoint", "status")
            members = etcdctl(namespace, pod.name, "member", "list")["members"]
        except SandboxError as error:
            said.append(str(error))
            continue
        names = {member["ID"]: member.get("name", "") for member in members}
        name = names.get(status["Status"]["leader"], "")
        if found := next((pod for pod in seen.pods if pod.name == name), None):
            return found
        said.append(f"{pod.name} knows no leader")
    raise SandboxError(f"No member leads: {said}")


def _choose(namespace: str, seen: Seen, who: str) -> list[Pod]:
    leads = leader(namespace, seen)
    followers = [pod for pod in sorted(seen.pods, key=lambda pod: pod.name) if pod != leads]
    return {"leader": [leads], "follower": followers[:1], "two": followers[:2], "all": [leads, *followers]}[who]


def _alone(namespace: str, seen: Seen) -> Pod:
    """A member that has its node to itself: without it there is still a quorum."""
    members = Counter(pod.node for pod in seen.pods)
    leads = leader(namespace, seen)
    alone = [pod for pod in (leads, *seen.pods) if members[pod.node] == 1]
    if not alone:
        raise SandboxError(f"Every node has more than one member: {dict(members)}")
    return alone[0]


def _has_seen(namespace: str, name: str, what: str, victims: list[Pod]) -> bool:
    if what == "membership":
        return True
    now = {pod.name: pod for pod in look(api(), namespace, name).pods}
    return all(
        victim.name not in now
        or (now[victim.name].uid, now[victim.name].restarts) != (victim.uid, victim.restarts)
        or now[victim.name].deleting
        for victim in victims
    )


def _pod(namespace: str, _: Seen, victims: list[Pod]) -> None:
    # Without waiting: kubectl may take the pod that comes next for the one that should go. _has_seen knows better.
    sandbox.kubectl("delete", "pod", f"--namespace={namespace}", "--wait=false", *(victim.name for victim in victims))


def _phase(namespace: str, _: Seen, victims: list[Pod]) -> None:
    for victim in victims:
        patch = json.dumps({"spec": {"activeDeadlineSeconds": 1}})
        sandbox.kubectl("patch", "pod", f"--namespace={namespace}", victim.name, f"--patch={patch}")


def _claim(namespace: str, seen: Seen, victims: list[Pod]) -> None:
    claims = [f"data-{victim.name}" for victim in victims]
    sandbox.kubectl("delete", "pvc", f"--namespace={namespace}", "--wait=false", *claims)
    _pod(namespace, seen, victims)


def _membership(namespace: str, seen: Seen, victims: list[Pod]) -> None:
    ids = {member["name"]: member["id"] for member in seen.status["members"]}
    other = next(pod for pod in seen.pods if pod not in victims)
    for victim in victims:
        remove = partial(_removed, namespace, other.name, ids[victim.name])
        wait_for(f"etcd to let {victim.name} go", remove, timeout=30, every=0.5)


def _removed(namespace: str, pod: str, member: str) -> bool:
    """For five seconds after somebody has come, etcd lets nobody go."""
    try:
        etcdctl(namespace, pod, "member", "remove", member)
    except SandboxError as error:
        if "unhealthy cluster" in str(error):
            return False
        raise
    return True


def _killed(damage: Callable[[Path], None]) -> Callable[[str, Seen, list[Pod]], None]:
    """Damage the files of an etcd that is stopped, so that it can't set them right, and kill it."""

    def do(namespace: str, _: Seen, victims: list[Pod]) -> None:
        for victim in victims:
            etcd, folder = process(victim.container), _volume(namespace, victim) / "data/member"
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
    """Turn every bit of the database's first pages."""
    with (folder / "snap/db").open("r+b") as file:
        pages = file.read(8 * _PAGE)
        file.seek(0)
        file.write(bytes(byte ^ 0xFF for byte in pages))


def cut_all(folder: Path) -> None:
    os.truncate(_newest_log(folder), 0)


def cut_half(folder: Path) -> None:
    """Of what was written: etcd sets space aside beyond that."""
    newest = _newest_log(folder)
    os.truncate(newest, len(newest.read_bytes().rstrip(b"\0")) // 2)


def _newest_log(folder: Path) -> Path:
    return max((folder / "wal").glob("*.wal"))


_DO: dict[str, Callable[[str, Seen, list[Pod]], None]] = {
    "pod": _pod,
    "phase": _phase,
    "claim": _claim,
    "membership": _membership,
    "data": _killed(empty),
    "database": _killed(flip),
    "log": _killed(cut_all),
    "tail": _killed(cut_half),
}


def _said(namespace: str, victim: Pod) -> str:
    """The log of the container that was started next, until it ends. A repair soon takes the pod and its log away, so
    the file is kept open from when it is there."""
    folder = layout.STATE / "hosts" / victim.node / "pod-logs" / f"{namespace}_{victim.name}_{victim.uid}" / "etcd"
    path = folder / f"{victim.restarts + 1}.log"
    wait_for(f"{victim.name} to be started again", path.exists, timeout=60, every=0.02)
    said, end = "", time.monotonic() + 30
    with path.open() as log:
        while '"level":"fatal"' not in said and time.monotonic() < end:
            said += log.read()
            time.sleep(0.1)
    return said


def main() -> None:
    match sys.argv[1:]:
        case [namespace, name, what, *who]:
            print(json.dumps(lose(namespace, name, what, *(who or [""]))))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main()
    except SandboxError as problem:
        sys.exit(f"lose: {problem}")
