"""Healthy clusters as observed, for tests to take something away from, and what the planner makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import manifests, member_config, planner
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.memory import Memory, Upgrade, recall, upgrade_record
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import (
    Certificates,
    Claim,
    Observation,
    Pod,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.situation import Situation, situation_of
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError, Unreachable
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member, MemberList, Status
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import of_image
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import Answer, ClusterView, build
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Action, Plan, Ref

NOW = datetime(2026, 11, 16, tzinfo=UTC)
OPTIONS = {"quotaBackendBytes": 448 << 20}  # the default for volumes of 1Gi
CLUSTER = Cluster(name="e", namespace="default", uid="uid-1", generation=1, size=3, version="3.6.16", options=OPTIONS)
CLUSTER_ID = 0xABC
UNMANAGED = Member(0xBAD, "", ("http://other:2380",), (), True)  # a learner that the EtcdCluster did not add

A = TypeVar("A", bound=Action)


# -- members and their answers


def member(number: int, member_id: int = 0, **changes: Any) -> Member:
    """A voter that has started; its ID is its ordinal plus one."""
    name = CLUSTER.pod_name(number)
    started = Member(member_id or number + 1, name, (CLUSTER.peer_url(name),), (CLUSTER.client_url(name),), False)
    return replace(started, **changes)


def unstarted(number: int, member_id: int) -> Member:
    """A learner that has not started yet."""
    return member(number, member_id, name="", client_urls=(), is_learner=True)


def answer(
    member_id: int, index: int = 100, *, learner: bool = False, error: str = "", cluster_version: str = "", **said: Any
) -> Answer:
    """What a member answers; member 1 leads."""
    status = Status(
        member_id=member_id,
        cluster_id=CLUSTER_ID,
        version="3.6.16",
        storage_version="3.6.0",
        leader_id=1,
        raft_term=2,
        raft_index=index,
        raft_applied_index=index,
        revision=index,
        db_size=20480,
        db_size_in_use=16384,
        is_learner=learner,
        errors=(),
    )
    return Answer(replace(status, **said), error, cluster_version=cluster_version)


def view_of(answers: Mapping[str, Answer | EtcdError], members: Iterable[Member]) -> ClusterView:
    """The view when members answer this, by URL; the healthy voters report these members."""
    listed = MemberList(CLUSTER_ID, tuple(members))
    return build({url: _reporting(one, listed) for url, one in answers.items()})


def _reporting(one: Answer | EtcdError, listed: MemberList) -> Answer | EtcdError:
    if isinstance(one, EtcdError) or one.status.is_learner:
        return one
    return replace(one, members=listed, agreed=one.healthy)


def listing(observed: Observation, *members: Member) -> Observation:
    """The voters that answer report these members."""
    return replace(observed, view=view_of(observed.view.answers, members))


def answering(observed: Observation, answers: Mapping[int, Answer]) -> Observation:
    """These pods give other answers."""
    told = {CLUSTER.client_url(CLUSTER.pod_name(number)): one for number, one in answers.items()}
    members = [one.member for one in observed.view.members]
    return replace(observed, view=view_of({**observed.view.answers, **told}, members))


def without_answer(observed: Observation, *numbers: int) -> Observation:
    """These pods refuse connections."""
    urls = [CLUSTER.client_url(CLUSTER.pod_name(number)) for number in numbers]
    refused = {url: Unreachable("connection refused", url) for url in urls}
    members = [one.member for one in observed.view.members]
    return replace(observed, view=view_of({**observed.view.answers, **refused}, members))


def down(observed: Observation, number: int, **changes: Any) -> Observation:
    """One member does not answer; its pod is changed."""
    return with_pod(without_answer(observed, number), number, **changes)


def without_quorum(observed: Observation) -> Observation:
    """No member answers."""
    return replace(observed, view=ClusterView())


# -- pods, PVCs and objects


def pod(number: int, cluster: Cluster = CLUSTER, **changes: Any) -> Pod:
    made = template_hash(cluster)
    ready = Pod(cluster.pod_name(number), f"pod-{number}", "198.18.1.1", True, False, NOW, made, "")
    return replace(ready, **changes)


def claim(number: int, cluster_uid: str = CLUSTER.uid, **changes: Any) -> Claim:
    return replace(Claim(f"data-{CLUSTER.pod_name(number)}", cluster_uid, f"claim-{number}"), **changes)


def with_pod(observed: Observation, number: int, **changes: Any) -> Observation:
    name = CLUSTER.pod_name(number)
    pods = tuple(replace(one, **changes) if one.name == name else one for one in observed.pods)
    return replace(observed, pods=pods)


def with_claim(observed: Observation, number: int, **changes: Any) -> Observation:
    name = f"data-{CLUSTER.pod_name(number)}"
    claims = tuple(replace(one, **changes) if one.name == name else one for one in observed.claims)
    return replace(observed, claims=claims)


def with_claims(observed: Observation, *claims: Claim) -> Observation:
    """With these PVCs too."""
    return replace(observed, claims=(*observed.claims, *claims))


def with_object(observed: Observation, manifest: Manifest) -> Observation:
    return replace(observed, objects={**observed.objects, key(manifest): manifest})


def without_object(observed: Observation, prefix: str) -> Observation:
    """Without the objects whose "Kind/name" begins with this."""
    left = {name: one for name, one in observed.objects.items() if not name.startswith(prefix)}
    return replace(observed, objects=left)


def remembering(observed: Observation, **changes: Any) -> Observation:
    return replace(observed, memory=replace(observed.memory, **changes))


def key(manifest: Manifest) -> str:
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def rendered(cluster: Cluster, replicas: int, files: Mapping[str, str], voters: int) -> dict[str, Manifest]:
    """The objects of a cluster whose pods run spec.version, as the API server has them."""
    made = manifests.objects(cluster, cluster.version, replicas, dict(files), voters)
    made.stateful_set["metadata"]["uid"] = "set-1"
    return {key(one): one for one in made}


def template_hash(cluster: Cluster) -> str:
    template = manifests.pod_template(cluster, cluster.version)
    found: str = template["metadata"]["annotations"][manifests.TEMPLATE_HASH]
    return found


# -- whole observations


def nothing() -> Observation:
    """An EtcdCluster that was just created."""
    return Observation(NOW, certificates=Certificates(missing=("e-ca-client",)))


def running(numbers: Iterable[int] = range(3), *, replicas: int = 3, opened: Iterable[int] = ()) -> Observation:
    """Members with these ordinals, all healthy, and their objects in their desired state."""
    found = list(numbers)
    names = [CLUSTER.pod_name(number) for number in found]
    initial = [f"{name}={CLUSTER.peer_url(name)}" for name in names]
    files = member_config.formed(
        CLUSTER, CLUSTER.version, names, {CLUSTER.pod_name(number): initial for number in opened}
    )
    answers = {CLUSTER.client_url(name): answer(number + 1) for number, name in zip(found, names, strict=True)}
    return Observation(
        NOW,
        Memory(cluster_id=f"{CLUSTER_ID:x}"),
        objects=rendered(CLUSTER, replicas, files, voters=len(found)),
        pods=tuple(pod(number) for number in found),
        claims=tuple(claim(number) for number in found),
        view=view_of(answers, map(member, found)),
    )


# -- what is planned


def situation(cluster: Cluster, observed: Observation) -> Situation:
    return situation_of(cluster, observed)


def planned(cluster: Cluster, observed: Observation) -> Plan:
    return planner.plan(situation_of(cluster, observed))


def next_change(observed: Observation, size: int = 3, **spec: Any) -> Plan | None:
    """The next change of a cluster of this size, whatever else is to be done; None for none."""
    s = situation_of(replace(CLUSTER, size=size, **spec), observed)
    assert s.membership
    return planner.change(s, s.membership)


def change(observed: Observation, size: int = 3, **spec: Any) -> Plan:
    plan = next_change(observed, size, **spec)
    assert plan
    return plan


def action_name(plan: Plan) -> str:
    """The action's name; "" for none."""
    return plan.action.name if plan.action else ""


def action_of(plan: Plan, kind: type[A]) -> A:
    """The action, which must be of this kind."""
    assert isinstance(plan.action, kind), plan
    return plan.action


def objects_of(plan: Plan) -> tuple[Manifest, ...]:
    """The objects that the action applies."""
    found: tuple[Manifest, ...] = getattr(plan.action, "objects", ())
    return found


def kinds_of(plan: Plan) -> list[str]:
    return [manifest["kind"] for manifest in objects_of(plan)]


def object_of(plan: Plan, kind: str) -> Manifest:
    return next(manifest for manifest in objects_of(plan) if manifest["kind"] == kind)


def names(refs: Iterable[Ref]) -> list[str]:
    return [ref.name for ref in refs]


def applied(observed: Observation, *plans: Plan) -> Observation:
    """After the objects of these plans were applied."""
    made = {key(manifest): manifest for plan in plans for manifest in objects_of(plan)}
    return replace(observed, objects={**observed.objects, **made})


def recorded(observed: Observation, plan: Plan) -> Observation:
    """After the status of a plan was written."""
    memory = observed.memory
    status = {"clusterID": memory.cluster_id, **upgrade_record(memory.upgrade), **plan.record, "phase": plan.phase}
    unhealthy_since, degraded_since = memory.unhealthy_since, memory.degraded_since
    known = replace(recall(status), unhealthy_since=unhealthy_since, degraded_since=degraded_since)
    return replace(observed, memory=known)


# -- upgrades


def with_versions(
    observed: Observation, found: Iterable[str], cluster_version: str, *, storage: str = "", downgrade: str = ""
) -> Observation:
    """The members run these versions."""
    running_versions = list(found)
    said: dict[str, Any] = {"storage_version": storage or f"{cluster_version}.0", "downgrade": downgrade}
    answers = {
        number: answer(number + 1, version=version, cluster_version=f"{cluster_version}.0", **said)
        for number, version in enumerate(running_versions)
    }
    pods = tuple(replace(one, version=version) for one, version in zip(observed.pods, running_versions, strict=True))
    return answering(replace(observed, pods=pods), answers)


def running_version(version: str) -> Observation:
    """A healthy cluster in which every member runs this version."""
    return with_versions(running(), [version] * 3, version.rpartition(".")[0])


def released(version: str, upgrade: Upgrade) -> Observation:
    """Pods that restart run this version, and none has restarted yet."""
    observed = running_version(CLUSTER.version)
    files = observed.objects["ConfigMap/e-config"]["data"]
    objects = rendered(replace(CLUSTER, version=version), 3, files, 3)
    return remembering(replace(observed, objects=objects), upgrade=upgrade, phase="Upgrading")


def upgraded(cluster: Cluster, upgrade: Upgrade) -> Observation:
    """Every member runs the version of the spec; that is not recorded yet."""
    observed = released(cluster.version, upgrade)
    pods = tuple(
        replace(one, template_hash=template_hash(replace(CLUSTER, version=cluster.version))) for one in observed.pods
    )
    return with_versions(replace(observed, pods=pods), [cluster.version] * 3, "3.6")


def image_version(plan: Plan) -> str:
    """The version in the StatefulSet that is applied; "" for none."""
    found = [one for one in objects_of(plan) if one["kind"] == "StatefulSet"]
    return of_image(found[0]["spec"]["template"]["spec"]["containers"][0]["image"]) if found else ""
