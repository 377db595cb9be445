"""Interrupt a snapshot half-way: python -m tests.e2e.faults.interrupt NAMESPACE BACKUP (job|member)

The EtcdBackup's destination is the PVC of its own name, which does not exist yet, so its Job waits. This command
creates the PVC, with a named pipe where the Job will write, so that the Job blocks. When a part of the snapshot was
written, the Job is deleted, or the member that sends the snapshot is killed. Prints the name of the Job or member.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from sandbox import cluster as sandbox
from sandbox import command
from sandbox.errors import SandboxError
from sandbox.run import wait_for

from ..fixtures import volumes
from ..fixtures.containers import first_process

_SOME = 1 << 20
_TIMEOUT = 120.0


def interrupt(namespace: str, backup: str, what: str) -> str:
    pipe = _pipe(namespace, backup)
    volumes.make(namespace, backup)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        _read(reader, _SOME)
        lost = _job(namespace, backup) if what == "job" else _member(namespace, backup)
        _drain(reader)
    finally:
        os.close(reader)
    return lost


def _pipe(namespace: str, backup: str) -> Path:
    made = json.loads(sandbox.kubectl("get", "etcdb", backup, f"--namespace={namespace}", "--output=json"))
    folder = volumes.folder_for(namespace, backup) / str(made["spec"]["cluster"])
    shutil.rmtree(folder.parent, ignore_errors=True)
    folder.mkdir(parents=True)
    pipe = folder / f".{backup}-{made['metadata']['uid'][:8]}.db.unfinished"
    os.mkfifo(pipe)
    for path in (folder.parent, folder, pipe):
        path.chmod(0o777)
    return pipe


def _read(reader: int, amount: int) -> None:
    """Read so many bytes, and leave the writer blocked."""
    ends = time.monotonic() + _TIMEOUT
    while amount > 0:
        if time.monotonic() > ends:
            raise SandboxError("No snapshot is being written.")
        ready, _, _ = select.select([reader], [], [], 1)
        try:
            piece = os.read(reader, min(amount, 1 << 16)) if ready else b""
        except BlockingIOError:
            continue
        if not piece:  # not opened by a writer yet
            time.sleep(0.05)
        amount -= len(piece)


def _drain(reader: int) -> None:
    """Read until the writer closes its end."""
    ends = time.monotonic() + _TIMEOUT
    while time.monotonic() < ends:
        select.select([reader], [], [], 1)
        try:
            if not os.read(reader, 1 << 16):
                return
        except BlockingIOError:
            continue
    raise SandboxError("The writer does not stop.")


def _job(namespace: str, backup: str) -> str:
    name = f"{backup}-backup"
    # A Job that is deleted before the operator saw it is created again.
    started = ("get", "etcdb", backup, f"--namespace={namespace}", "--output=jsonpath={.status.startTime}")
    wait_for("the operator to see its Job", lambda: bool(sandbox.kubectl(*started)), timeout=_TIMEOUT)
    sandbox.kubectl("delete", "job", name, f"--namespace={namespace}", "--cascade=background", "--wait=false")
    pods = f"--selector=batch.kubernetes.io/job-name={name}"
    listing = ("get", "pods", f"--namespace={namespace}", pods, "--output=name")
    wait_for("its pod to end", lambda: not sandbox.kubectl(*listing), timeout=_TIMEOUT)
    return name


def _member(namespace: str, backup: str) -> str:
    job = json.loads(sandbox.kubectl("get", "job", f"{backup}-backup", f"--namespace={namespace}", "--output=json"))
    member = first_endpoint(job)
    pod = json.loads(sandbox.kubectl("get", "pod", member, f"--namespace={namespace}", "--output=json"))
    container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    os.kill(first_process(container), signal.SIGKILL)  # at once: the rest of the snapshot must not arrive
    sandbox.kubectl("delete", "pod", member, f"--namespace={namespace}", "--grace-period=0", "--force")
    return member


def first_endpoint(job: dict[str, Any]) -> str:
    """The pod of the member that a backup's Job tries first."""
    (save,) = job["spec"]["template"]["spec"]["initContainers"]
    endpoints = next(each["value"] for each in save["env"] if each["name"] == "ETCDCTL_ENDPOINTS")
    return str(endpoints.partition("://")[2].partition(".")[0])


def main() -> None:
    if len(sys.argv) != 4 or sys.argv[3] not in ("job", "member"):
        sys.exit(__doc__)
    print(interrupt(*sys.argv[1:]))


if __name__ == "__main__":
    command.run("interrupt", main)
