"""Pictures of clusters that are whole, for tests to take something away from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import config, manifests
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Answer, Claim, Observed, Pod
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Plan
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member, MemberList, Status

NOW = datetime(2026, 11, 16, tzinfo=UTC)
CLUSTER = Cluster(name="e", namespace="default", uid="uid-1", generation=1, size=3, version="3.6.16")
HASH = manifests.pod_template(CLUSTER)["metadata"]["annotations"][manifests.TEMPLATE_HASH]
OTHER = Member(0xBAD, "", ("http://other:2380",), (), True)  # a learner that is none of ours


def member(number: int, member_id: int = 0, **changes: Any) -> Member:
    """One that has started and votes; its ID is its number plus one."""
    name = CLUSTER.pod_name(number)
    whole = Member(member_id or number + 1, name, (CLUSTER.peer_url(name),), (CLUSTER.client_url(name),), False)
    return replace(whole, **changes)


def unstarted(number: int, member_id: int) -> Member:
    return member(number, member_id, name="", client_urls=(), is_learner=True)


def answer(member_id: int, index: int = 100, *, learner: bool = False) -> Answer:
    status = Status(member_id, 0xABC, "3.6.16", "3.6.0", 1, 2, index, index, 1, 1, 1, learner, ())
    return Answer(status, healthy=True)


def pod(number: int, **changes: Any) -> Pod:
    whole = Pod(CLUSTER.pod_name(number), f"pod-{number}", "198.18.1.1", True, False, NOW, HASH, "")
    return replace(whole, **changes)


def running(numbers: Iterable[int] = range(3), *, replicas: int = 3, opened: Iterable[int] = ()) -> Observed:
    """Members in these places, all of them well and their objects as they should be."""
    found = list(numbers)
    names = [CLUSTER.pod_name(number) for number in found]
    initial = [f"{name}={CLUSTER.peer_url(name)}" for name in names]
    files = config.formed(CLUSTER, names, {CLUSTER.pod_name(number): initial for number in opened})
    objects = manifests.objects(CLUSTER, replicas, files, voters=len(found))
    return Observed(
        NOW,
        cluster_id="abc",
        objects={f"{each['kind']}/{each['metadata']['name']}": each for each in objects},
        pods=tuple(pod(number) for number in found),
        claims=tuple(Claim(f"data-{name}", CLUSTER.uid) for name in names),
        answers={name: answer(number + 1) for number, name in zip(found, names, strict=True)},
        members=MemberList(0xABC, tuple(member(number) for number in found)),
    )


def applied(seen: Observed, *plans: Plan) -> Observed:
    """What is there after the objects of these plans were applied."""
    objects = dict(seen.objects)
    for each in plans:
        objects |= {f"{made['kind']}/{made['metadata']['name']}": made for made in each.apply}
    return replace(seen, objects=objects)


def without(seen: Observed, number: int, **changes: Any) -> Observed:
    """One member does not answer; its pod is changed."""
    name = CLUSTER.pod_name(number)
    pods = tuple(replace(each, **changes) if each.name == name else each for each in seen.pods)
    answers = {key: value for key, value in seen.answers.items() if key != name}
    return replace(seen, pods=pods, answers=answers)


def listing(seen: Observed, *members: Member) -> Observed:
    return replace(seen, members=MemberList(0xABC, members))


def answering(seen: Observed, answers: Mapping[int, Answer]) -> Observed:
    return replace(seen, answers=dict(seen.answers) | {CLUSTER.pod_name(n): each for n, each in answers.items()})
