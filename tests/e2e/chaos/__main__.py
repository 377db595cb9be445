"""Random faults and edits on a real cluster: python -m tests.e2e.chaos MINUTES SEED [NAMESPACE]

A seed replays the same steps with the same pauses; what they meet depends on the machine. Meanwhile a client writes,
reads, deletes and swaps keys. The run fails if its history is not strictly serializable, if anything acknowledged is
lost, or if the cluster does not converge once the faults have ended.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict

from sandbox import cluster as sandbox
from sandbox import command
from sandbox.errors import SandboxError
from sandbox.run import say

from ..checks import converged
from ..checks.observed import api
from ..traffic import writer
from .faults import LOSES_DATA, SPEC, End, Target, inject
from .steps import Step, steps

_NAME = "chaos"
_PATIENCE = 400.0  # seconds until a cluster has converged, after many edits and faults at once
_LONGEST = 60  # minutes; the writer ends by itself some time later
_EVERY = 12  # steps after which the cluster must converge, at the latest


class Run:
    """Faults that have not ended yet, and what was done."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._active: list[tuple[float, str, End]] = []  # when each one ends
        self.done: Counter[str] = Counter()

    def wait(self, seconds: float) -> None:
        """Wait, and end the faults that are due."""
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            for each in [each for each in self._active if each[0] <= now]:
                self._end(each)
            time.sleep(0.1)

    def step(self, step: Step) -> None:
        for each in [each for each in self._active if each[1] == step.what or _both_nodes(each[1], step.what)]:
            self._end(each)
        if step.what in LOSES_DATA:
            self.calm()
        try:
            end = inject(self._target, step)
        except SandboxError as error:
            say(f"not possible now: {step.what}: {str(error)[:200]}")
            return
        self.done[step.what] += 1
        if end:
            self._active.append((time.monotonic() + step.lasts, step.what, end))

    def calm(self) -> None:
        """End every fault, and wait until the cluster has converged."""
        self.end_all()
        say(converged.wait(self._target.namespace, self._target.name, _PATIENCE))

    def end_all(self) -> None:
        """Every fault, also when one can't be ended."""
        problems = []
        for each in list(self._active):
            try:
                self._end(each)
            except SandboxError as error:
                problems.append(str(error))
        if problems:
            raise SandboxError("; ".join(problems))

    def _end(self, each: tuple[float, str, End]) -> None:
        self._active.remove(each)
        each[2]()
        say(f"ended: {each[1]}")


def _both_nodes(one: str, other: str) -> bool:
    """Only one node at a time is disturbed."""
    return one.startswith("node ") and other.startswith("node ")


def run(minutes: float, seed: int, namespace: str) -> None:
    if minutes > _LONGEST:
        raise SandboxError(f"A run takes {_LONGEST} minutes at most: use several seeds.")
    target = Target(api(), namespace, _NAME)
    _create(target)
    converged.wait(namespace, _NAME)
    writer.start(namespace, _NAME)
    chaos, ends = Run(target), time.monotonic() + minutes * 60
    try:
        for number, step in enumerate(steps(seed), 1):
            if time.monotonic() + step.after >= ends:
                break
            chaos.wait(step.after)
            chaos.step(step)
            if number % _EVERY == 0:
                chaos.calm()
        chaos.calm()
        report = writer.end(namespace, _NAME)
    except SandboxError as error:
        raise SandboxError(f"{error}\nSeed {seed} repeats these steps.") from error
    finally:
        with suppress(SandboxError):
            chaos.end_all()
        writer.abandon(namespace, _NAME)
    print(json.dumps({"seed": seed, "minutes": minutes, "violations": 0, "steps": chaos.done, **asdict(report)}))


def _create(target: Target) -> None:
    """A new cluster. One that an earlier run left is deleted with its namespace, and its data with it."""
    if sandbox.kubectl("get", "etcd", target.name, f"--namespace={target.namespace}", "--ignore-not-found"):
        sandbox.kubectl("delete", "namespace", target.namespace, "--timeout=100s")
    resource = {
        "apiVersion": "etcdops.dev/v1beta1",
        "kind": "EtcdCluster",
        "metadata": {"name": target.name, "namespace": target.namespace},
        "spec": SPEC,
    }
    objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": target.namespace}}, resource]
    for each in objects:
        sandbox.kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(each))


def main() -> None:
    match sys.argv[1:]:
        case [minutes, seed, *namespace] if len(namespace) < 2:
            run(float(minutes), int(seed), *(namespace or [_NAME]))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    command.run("chaos", main)
