"""Wait until a cluster has converged: python -m tests.e2e.checks.converged NAMESPACE CLUSTER [REASON …]

Converged: spec.size voters, all healthy, of spec.version and with the same data; one sealed config, pod and PVC for
each and no more; and a status that says so. Compared with the last check: the same cluster ID; the same member ID where
the data was kept, a new one where `tests.e2e.faults.lose` took it. Each REASON must have an event since then.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube, KubeError

from sandbox import cluster as sandbox
from sandbox import command
from sandbox.errors import SandboxError

from . import baseline
from .baseline import Baseline
from .observed import Etcd, Observed, api, ask_etcd, observe

TIMEOUT = 150.0


def wait(namespace: str, name: str, timeout: float = TIMEOUT) -> str:
    """Wait, and save the members as the baseline of the next check; returns a summary."""
    kube, started = api(), time.monotonic()
    while time.monotonic() - started < timeout:
        try:
            seen = _observe(kube, namespace, name)
            uid = seen.resource["metadata"]["uid"]
            problems = [*deviations(seen), *changed(seen, baseline.load(uid))]
        except KubeError as error:  # a busy API server is asked again
            problems = [str(error)]
        else:
            if seen.etcd and not problems:
                baseline.save(uid, _baseline(seen.etcd))
                return f"converged after {time.monotonic() - started:.1f} s: {_summary(seen, seen.etcd)}"
        time.sleep(0.2)
    raise SandboxError(f"{name} has not converged after {timeout:.0f} s: {'; '.join(problems)}")


def _baseline(etcd: Etcd) -> Baseline:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Baseline(etcd.cluster_id, {name: key for key, name in etcd.voters.items()}, since=now)


def _summary(seen: Observed, etcd: Etcd) -> str:
    ids = {name: key for key, name in etcd.voters.items()}
    pods = sorted(seen.pods, key=lambda pod: pod.name)
    return ", ".join(f"{pod.name} ({ids[pod.name]}) on {pod.node}" for pod in pods)


def _observe(kube: Kube, namespace: str, name: str) -> Observed:
    """etcd is asked only when nothing else deviates: that costs more."""
    seen = observe(kube, namespace, name)
    if any(_objects(seen)) or any(_status(seen)):
        return seen
    return replace(seen, etcd=ask_etcd(namespace, seen.pods[0].name))


def deviations(seen: Observed) -> list[str]:
    """How the cluster differs from its spec."""
    found = [*_objects(seen), *_status(seen)]
    if seen.etcd is not None:
        found += _etcd(seen, seen.etcd)
    elif not found:
        found.append("not every member answers etcdctl")
    return found


def changed(seen: Observed, known: Baseline) -> list[str]:
    """Members and IDs that changed since the baseline and must not have, or the reverse."""
    if seen.etcd is None or not known.cluster_id:
        return []
    found = []
    if seen.etcd.cluster_id != known.cluster_id:
        found.append(f"the cluster ID was {known.cluster_id} and is {seen.etcd.cluster_id}")
    now = {name: key for key, name in seen.etcd.voters.items()}
    for name, before in known.members.items():
        if name in known.lost and before in now.values():
            found.append(f"{name} lost its data, and its old ID {before} is still a member")
        elif name in now and name not in (*known.lost, *known.uncertain) and now[name] != before:
            found.append(f"{name} kept its data, and its ID was {before} and is {now[name]}")
    return found


def _names(seen: Observed) -> list[str]:
    name = seen.resource["metadata"]["name"]
    return [f"{name}-{ordinal}" for ordinal in range(seen.resource["spec"]["size"])]


def _objects(seen: Observed) -> Iterator[str]:
    names = _names(seen)
    if seen.replicas != len(names):
        yield f"{seen.replicas} replicas"
    pods = {pod.name: pod for pod in seen.pods}
    if sorted(pods) != names or len(seen.pods) != len(names):
        yield f"pods {sorted(pods)}"
    yield from (f"pod {pod.name} is not ready" for pod in seen.pods if not pod.ready)
    yield from (f"pod {pod.name} is being deleted" for pod in seen.pods if pod.deleting)
    if list(seen.claims) != ([f"data-{name}" for name in names] if seen.is_persistent else []):
        yield f"claims {list(seen.claims)}"
    if sorted(seen.files) != [f"{name}.yaml" for name in names]:
        yield f"files {sorted(seen.files)}"
    yield from (f"{file} is not sealed" for file, text in seen.files.items() if not _is_sealed(file, text))


def _is_sealed(file: str, text: str) -> bool:
    """Whether only the member itself is listed, in an existing cluster."""
    alone = rf'^initial-cluster: "{re.escape(file.removesuffix(".yaml"))}=[^,"]*"$'
    return 'initial-cluster-state: "existing"' in text.splitlines() and bool(re.search(alone, text, re.MULTILINE))


def _status(seen: Observed) -> Iterator[str]:
    status, size = seen.status, len(_names(seen))
    progressing: dict[str, Any] = next((c for c in status.get("conditions", []) if c["type"] == "Progressing"), {})
    if status.get("phase") != "Running" or progressing.get("status") != "False":
        yield f"phase {status.get('phase')}, {progressing.get('reason')}: {status.get('message')}"
    if status.get("observedGeneration") != seen.resource["metadata"]["generation"]:
        yield "the status is of an earlier spec"
    if (status.get("size"), status.get("readyMembers")) != (size, size):
        yield f"status.size {status.get('size')}, readyMembers {status.get('readyMembers')}"
    if status.get("version") != seen.resource["spec"]["version"]:
        yield f"status.version {status.get('version')}"
    roles = sorted(member["role"] for member in status.get("members", []))
    if roles != ["leader", *["voter"] * (size - 1)]:
        yield f"roles {roles}"


def _etcd(seen: Observed, etcd: Etcd) -> Iterator[str]:
    if etcd.learners:
        yield f"learners {etcd.learners}"
    if sorted(etcd.voters.values()) != _names(seen):
        yield f"voters {etcd.voters}"
    if set(etcd.hashes) != set(etcd.voters):
        yield f"only {sorted(etcd.hashes)} of {sorted(etcd.voters)} answer"
    if len(set(etcd.hashes.values())) > 1:
        yield f"members differ in their data: {etcd.hashes}"
    if others := {
        key: version for key, version in etcd.versions.items() if version != seen.resource["spec"]["version"]
    }:
        yield f"other versions than wanted: {others}"
    if {m["id"]: m["name"] for m in seen.status.get("members", [])} != etcd.voters:
        yield f"the status has other members than etcd: {seen.status.get('members')}"
    if seen.status.get("clusterID") != etcd.cluster_id:
        yield f"status.clusterID is {seen.status.get('clusterID')}, etcd's is {etcd.cluster_id}"


def missing_events(namespace: str, name: str, reasons: list[str], since: str) -> list[str]:
    """The reasons without an event."""
    events = json.loads(sandbox.kubectl("get", "events", f"--namespace={namespace}", "--output=json"))["items"]
    found = {
        event["reason"]
        for event in events
        if event["involvedObject"]["kind"] == "EtcdCluster"
        and event["involvedObject"]["name"] == name
        and event["lastTimestamp"] >= since
    }
    return sorted(set(reasons) - found)


def main() -> None:
    namespace, name, *reasons = sys.argv[1:]
    resource = api().get("EtcdCluster", namespace, name)
    if resource is None:
        sys.exit(f"There is no EtcdCluster {namespace}/{name}.")
    since = baseline.load(resource["metadata"]["uid"]).since
    summary = wait(namespace, name)
    if missing := missing_events(namespace, name, reasons, since):
        sys.exit(f"{name} has converged, but there is no event since {since} with reason {', '.join(missing)}")
    print(summary)


if __name__ == "__main__":
    command.run("converged", main)
