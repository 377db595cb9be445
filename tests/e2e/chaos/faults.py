"""The faults and edits of a run. Each says what it did, and returns how it ends, if it does."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube

from sandbox import cluster as sandbox
from sandbox import faults as nodes
from sandbox.run import say

from ..checks import baseline
from ..checks.observed import Observed, observe
from ..faults.kill_operator import operator
from ..faults.lose import lose
from ..fixtures.containers import first_process, processes
from .steps import Step

T = TypeVar("T")
End = Callable[[], object]

SIZES, SMALLEST = (3, 4, 5), 3
VERSIONS = ("3.6.16", "3.7.3")
SPEC: dict[str, Any] = {
    "size": 3,
    "version": VERSIONS[0],
    "storage": {"size": "256Mi"},
    "upgrade": {"allowDowngrade": True},
}
# The members' data: only when all of them have it, because nothing brings back what a majority has lost.
LOSES_DATA = {"lose claim": "claim", "lose data": "data", "damage database": "database"}
_NODE = {"node off": ("off", "on"), "node freeze": ("freeze", "thaw"), "node cut": ("cut", "heal")}
_BACK = {back: nodes.ACTIONS[back] for _, back in _NODE.values()}
_OPERATORS = "--namespace=etcdops-system"
_SECOND = "etcdops-second"


@dataclass(frozen=True)
class Target:
    kube: Kube
    namespace: str
    name: str

    def observe(self) -> Observed:
        return observe(self.kube, self.namespace, self.name)

    def edit(self, **spec: Any) -> None:
        patch = json.dumps({"spec": spec})
        sandbox.kubectl("patch", "etcd", self.name, f"--namespace={self.namespace}", "--type=merge", f"--patch={patch}")


def inject(target: Target, step: Step) -> End | None:
    """Do what a step asks for. SandboxError when that is not possible now."""
    return _DO[step.what](target, step)


def _delete_pod(target: Target, step: Step) -> End | None:
    victim = _choose(target.observe().pods, step.who)
    force = ("--grace-period=0", "--force") if step.lasts > 18 else ()
    sandbox.kubectl("delete", "pod", f"--namespace={target.namespace}", victim.name, "--wait=false", *force)
    say(f"deleted pod {victim.name}{' by force' if force else ''}")
    return None


def _lose_data(target: Target, step: Step) -> End | None:
    what = LOSES_DATA[step.what]
    done = lose(target.namespace, target.name, what, "leader" if step.who < 0.4 else "follower")
    say(f"{what} of {', '.join(done['lost'])} is lost")
    return None


def _disturb_node(target: Target, step: Step) -> End:
    action, back = _NODE[step.what]
    seen = target.observe()
    node = _choose(sorted({pod.node for pod in seen.pods if pod.node}), step.who)
    # The operator may replace a member whose node does not come back in time.
    names = [pod.name for pod in seen.pods if pod.node == node]
    baseline.uncertain(seen.resource["metadata"]["uid"], names)
    nodes.ACTIONS[action](node)
    say(f"{action} {node} with {', '.join(names)}")
    return partial(_BACK[back], node)


def _kill_operator(_target: Target, _step: Step) -> End | None:
    pod, container = operator()
    os.kill(first_process(container), signal.SIGKILL)
    sandbox.kubectl("delete", "pod", _OPERATORS, pod, "--grace-period=0", "--force")
    say(f"killed {pod}")
    return None


def _freeze_operator(_target: Target, _step: Step) -> End:
    """An operator that goes on in the middle of an action, arbitrarily late."""
    pod, container = operator()
    frozen: list[int] = []
    while more := [pid for pid in processes(container) if pid not in frozen]:
        _signal(more, signal.SIGSTOP)
        frozen += more
    say(f"froze {pod}")
    return partial(_signal, frozen, signal.SIGCONT)


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(pid, number)


def _start_second_operator(_target: Target, _step: Step) -> End:
    """Another operator that serves the same namespaces and does not wait for the first one's lease."""
    found = json.loads(sandbox.kubectl("get", "deployment", "etcdops", _OPERATORS, "--output=json"))
    labels = {"app.kubernetes.io/name": _SECOND}
    template = found["spec"]["template"]
    (container,) = template["spec"]["containers"]
    container["args"] = [each for each in container["args"] if not each.startswith("--leader-elect")]
    for each in container["env"]:
        if each["name"] == "ETCDOPS_OPERATOR":
            each["value"] = f"etcdops-system/{_SECOND}"
    template["metadata"] = {"labels": labels}
    second = {
        "apiVersion": found["apiVersion"],
        "kind": "Deployment",
        "metadata": {"name": _SECOND, "namespace": "etcdops-system"},
        "spec": {**found["spec"], "selector": {"matchLabels": labels}, "template": template},
    }
    sandbox.kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(second))
    say("started a second operator")
    return partial(sandbox.kubectl, "delete", "deployment", _SECOND, _OPERATORS, "--wait=false")


def _pause(target: Target, _step: Step) -> End:
    target.edit(paused=True)
    say("paused the cluster")
    return partial(target.edit, paused=False)


def _edit(target: Target, step: Step) -> End | None:
    seen = target.observe()
    spec: dict[str, Any]
    match step.what:
        case "edit size":
            spec = {"size": _choose([size for size in SIZES if size != seen.resource["spec"]["size"]], step.who)}
            # A member that left may have come back by the next check.
            beyond = [f"{target.name}-{ordinal}" for ordinal in range(SMALLEST, max(SIZES))]
            baseline.uncertain(seen.resource["metadata"]["uid"], beyond)
        case "edit settings":
            spec = {"options": {"snapshotCount": 5000 + int(step.who * 5000)}}
        case "edit version":
            spec = {"version": next(each for each in VERSIONS if each != seen.resource["spec"]["version"])}
        case _:
            size = int(seen.resource["spec"]["storage"]["size"].removesuffix("Mi"))
            spec = {"storage": {"size": f"{size + 16}Mi"}}
    target.edit(**spec)
    say(f"edited {json.dumps(spec)}")
    return None


def _choose(among: Sequence[T], who: float) -> T:
    return among[int(who * len(among))]


_DO: dict[str, Callable[[Target, Step], End | None]] = {
    "delete pod": _delete_pod,
    "kill operator": _kill_operator,
    "freeze operator": _freeze_operator,
    "second operator": _start_second_operator,
    "pause": _pause,
    **dict.fromkeys(LOSES_DATA, _lose_data),
    **dict.fromkeys(_NODE, _disturb_node),
    **dict.fromkeys(("edit size", "edit settings", "edit version", "edit volume"), _edit),
}
