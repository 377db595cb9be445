from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from proof import whole
from proof.memory import Memory
from proof.seen import Etcd, Pod, Seen

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


WHOLE = Seen(
    resource=_resource(),
    replicas=3,
    files={f"{name}.yaml": _file(name) for name in NAMES},
    pods=tuple(map(_pod, NAMES)),
    claims=tuple(f"data-{name}" for name in NAMES),
    etcd=ETCD,
)


def test_all_is_well() -> None:
    assert whole.wrong(WHOLE) == []
    memory = replace(WHOLE, resource=_resource() | {"spec": SPEC | {"storage": {"type": "Memory"}}}, claims=())
    assert whole.wrong(memory) == []


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (replace(WHOLE, replicas=4), "4 replicas"),
        (replace(WHOLE, pods=WHOLE.pods[:2]), "pods"),
        (replace(WHOLE, pods=(*WHOLE.pods[:2], replace(WHOLE.pods[2], ready=False))), "pod a-2 is not ready"),
        (replace(WHOLE, pods=(*WHOLE.pods[:2], replace(WHOLE.pods[2], deleting=True))), "pod a-2 is being deleted"),
        (replace(WHOLE, claims=(*WHOLE.claims, "data-a-3")), "claims"),
        (replace(WHOLE, claims=()), "claims"),
        (replace(WHOLE, files={**WHOLE.files, "a-3.yaml": _file("a-3")}), "files"),
        (replace(WHOLE, files={**WHOLE.files, "a-2.yaml": _file("a-2", "a-0")}), "a-2.yaml is not sealed"),
        (replace(WHOLE, files={**WHOLE.files, "a-2.yaml": _file("a-0")}), "a-2.yaml is not sealed"),
        (
            replace(WHOLE, files={**WHOLE.files, "a-2.yaml": _file("a-2").replace("existing", "new")}),
            "a-2.yaml is not sealed",
        ),
        (replace(WHOLE, resource=_resource(phase="Degraded")), "phase Degraded"),
        (
            replace(WHOLE, resource=_resource(conditions=[{"type": "Progressing", "status": "True"}])),
            "phase Running, None",
        ),
        (replace(WHOLE, resource=_resource(observedGeneration=1)), "an earlier spec"),
        (replace(WHOLE, resource=_resource(readyMembers=2)), "readyMembers 2"),
        (replace(WHOLE, resource=_resource(members=STATUS["members"][:2])), "roles"),
        (replace(WHOLE, resource=_resource(clusterID="c2")), "status.clusterID is c2"),
        (replace(WHOLE, resource=_resource(version="3.5.35")), "status.version 3.5.35"),
        (replace(WHOLE, etcd=replace(ETCD, versions={**ETCD.versions, "2": "3.5.35"})), "{'2': '3.5.35'}"),
        (replace(WHOLE, etcd=None), "not every member answers"),
        (replace(WHOLE, etcd=replace(ETCD, learners={"4": "a-3"})), "learners"),
        (replace(WHOLE, etcd=replace(ETCD, voters={**IDS, "4": "b-0"})), "voters"),
        (replace(WHOLE, etcd=replace(ETCD, voters={**IDS, "3": "a-9"})), "voters"),
        (replace(WHOLE, etcd=replace(ETCD, voters={"1": "a-0", "2": "a-1", "9": "a-2"})), "other members than etcd"),
        (replace(WHOLE, etcd=replace(ETCD, hashes={"1": 42, "2": 42})), "answer"),
        (replace(WHOLE, etcd=replace(ETCD, hashes={"1": 42, "2": 42, "3": 43})), "differ in their data"),
    ],
)
def test_what_keeps_it_from_being_whole(seen: Seen, said: str) -> None:
    found = whole.wrong(seen)
    assert any(said in each for each in found), found


def test_against_the_last_time() -> None:
    known = Memory("c1", {name: key for key, name in IDS.items()})
    assert whole.changed(WHOLE, known) == []
    assert whole.changed(WHOLE, Memory()) == []
    assert whole.changed(WHOLE, replace(known, cluster_id="c0")) == ["the cluster ID was c0 and is c1"]
    before = replace(known, members={**known.members, "a-2": "9", "a-3": "10"})  # a-3 was removed since
    assert whole.changed(WHOLE, before) == ["a-2 kept its data, and its ID was 9 and is 3"]
    assert whole.changed(WHOLE, replace(before, lost=("a-2",))) == []
    assert whole.changed(WHOLE, replace(before, uncertain=("a-2",))) == []
    assert whole.changed(WHOLE, replace(known, uncertain=("a-2",))) == []
    assert whole.changed(WHOLE, replace(known, lost=("a-2",))) == [
        "a-2 lost its data, and its old ID 3 is still a member"
    ]
