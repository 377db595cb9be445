from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.e2e.checks import converged
from tests.e2e.checks.baseline import Baseline
from tests.e2e.checks.observed import Etcd, Observed, Pod

NAMES = ["a-0", "a-1", "a-2"]
IDS = dict(zip("123", NAMES, strict=True))
ETCD = Etcd(
    "c1", IDS, learners={}, leader="1", hashes=dict.fromkeys("123", 42), versions=dict.fromkeys("123", "3.6.16")
)


def _file(name: str, *others: str) -> str:
    members = ",".join(f"{each}=https://{each}:2380" for each in (name, *others))
    return f'name: "{name}"\ninitial-cluster-state: "existing"\ninitial-cluster: "{members}"\n'


def _pod(name: str) -> Pod:
    return Pod(name, f"uid of {name}", "node-1", ready=True, deleting=False, restarts=0, container="")


SPEC = {"size": 3, "version": "3.6.16"}
STATUS: dict[str, Any] = {
    "phase": "Running",
    "observedGeneration": 2,
    "clusterID": "c1",
    "version": "3.6.16",
    "size": 3,
    "readyMembers": 3,
    "conditions": [{"type": "Progressing", "status": "False"}],
    "members": [{"id": i, "name": n, "role": "leader" if i == "1" else "voter"} for i, n in IDS.items()],
}


def _resource(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "generation": 2}, "spec": SPEC, "status": STATUS | status}


CONVERGED = Observed(
    resource=_resource(),
    replicas=3,
    files={f"{name}.yaml": _file(name) for name in NAMES},
    pods=tuple(map(_pod, NAMES)),
    claims=tuple(f"data-{name}" for name in NAMES),
    etcd=ETCD,
)


def test_converged_cluster_has_no_deviations() -> None:
    assert converged.deviations(CONVERGED) == []
    memory = replace(CONVERGED, resource=_resource() | {"spec": SPEC | {"storage": {"type": "Memory"}}}, claims=())
    assert converged.deviations(memory) == []


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (replace(CONVERGED, replicas=4), "4 replicas"),
        (replace(CONVERGED, pods=CONVERGED.pods[:2]), "pods"),
        (
            replace(CONVERGED, pods=(*CONVERGED.pods[:2], replace(CONVERGED.pods[2], ready=False))),
            "pod a-2 is not ready",
        ),
        (
            replace(CONVERGED, pods=(*CONVERGED.pods[:2], replace(CONVERGED.pods[2], deleting=True))),
            "pod a-2 is being deleted",
        ),
        (replace(CONVERGED, claims=(*CONVERGED.claims, "data-a-3")), "claims"),
        (replace(CONVERGED, claims=()), "claims"),
        (replace(CONVERGED, files={**CONVERGED.files, "a-3.yaml": _file("a-3")}), "files"),
        (replace(CONVERGED, files={**CONVERGED.files, "a-2.yaml": _file("a-2", "a-0")}), "a-2.yaml is not sealed"),
        (replace(CONVERGED, files={**CONVERGED.files, "a-2.yaml": _file("a-0")}), "a-2.yaml is not sealed"),
        (
            replace(CONVERGED, files={**CONVERGED.files, "a-2.yaml": _file("a-2").replace("existing", "new")}),
            "a-2.yaml is not sealed",
        ),
        (replace(CONVERGED, resource=_resource(phase="Degraded")), "phase Degraded"),
        (
            replace(CONVERGED, resource=_resource(conditions=[{"type": "Progressing", "status": "True"}])),
            "phase Running, None",
        ),
        (replace(CONVERGED, resource=_resource(observedGeneration=1)), "an earlier spec"),
        (replace(CONVERGED, resource=_resource(readyMembers=2)), "readyMembers 2"),
        (replace(CONVERGED, resource=_resource(members=STATUS["members"][:2])), "roles"),
        (replace(CONVERGED, resource=_resource(clusterID="c2")), "status.clusterID is c2"),
        (replace(CONVERGED, resource=_resource(version="3.5.35")), "status.version 3.5.35"),
        (replace(CONVERGED, etcd=replace(ETCD, versions={**ETCD.versions, "2": "3.5.35"})), "{'2': '3.5.35'}"),
        (replace(CONVERGED, etcd=None), "not every member answers"),
        (replace(CONVERGED, etcd=replace(ETCD, learners={"4": "a-3"})), "learners"),
        (replace(CONVERGED, etcd=replace(ETCD, voters={**IDS, "4": "b-0"})), "voters"),
        (replace(CONVERGED, etcd=replace(ETCD, voters={**IDS, "3": "a-9"})), "voters"),
        (
            replace(CONVERGED, etcd=replace(ETCD, voters={"1": "a-0", "2": "a-1", "9": "a-2"})),
            "other members than etcd",
        ),
        (replace(CONVERGED, etcd=replace(ETCD, hashes={"1": 42, "2": 42})), "answer"),
        (replace(CONVERGED, etcd=replace(ETCD, hashes={"1": 42, "2": 42, "3": 43})), "differ in their data"),
    ],
)
def test_deviation_is_found(seen: Observed, said: str) -> None:
    found = converged.deviations(seen)
    assert any(said in each for each in found), found


def test_changes_since_the_baseline_are_found() -> None:
    known = Baseline("c1", {name: key for key, name in IDS.items()})
    assert converged.changed(CONVERGED, known) == []
    assert converged.changed(CONVERGED, Baseline()) == []
    assert converged.changed(CONVERGED, replace(known, cluster_id="c0")) == ["the cluster ID was c0 and is c1"]
    before = replace(known, members={**known.members, "a-2": "9", "a-3": "10"})  # a-3 was removed since then
    assert converged.changed(CONVERGED, before) == ["a-2 kept its data, and its ID was 9 and is 3"]
    assert converged.changed(CONVERGED, replace(before, lost=("a-2",))) == []
    assert converged.changed(CONVERGED, replace(before, uncertain=("a-2",))) == []
    assert converged.changed(CONVERGED, replace(known, uncertain=("a-2",))) == []
    assert converged.changed(CONVERGED, replace(known, lost=("a-2",))) == [
        "a-2 lost its data, and its old ID 3 is still a member"
    ]
