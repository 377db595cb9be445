"""What to do next: a pure function from what is wanted and what is there to one step, and the reason in a user's words.

This is the state machine; docs/states.md is drawn from TRANSITIONS by `python -m tools.states`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from . import config, manifests
from .kube import Manifest
from .observed import Observed
from .spec import Cluster

# Seconds until the next look. Changes of readiness come as events (playbooks/etcdcluster_nudge.yml), so a settled
# cluster is looked at only for what makes none.
SOON, WATCHFUL, SETTLED = 1, 5, 300
_STARTING = timedelta(minutes=2)  # how long a pod may take before its silence means something


class Phase(StrEnum):
    """The states of a cluster, as `kubectl get etcd` shows them."""

    PENDING = "Pending"
    BOOTSTRAPPING = "Bootstrapping"
    RUNNING = "Running"
    DEGRADED = "Degraded"
    STARTING = "Starting"
    HIBERNATED = "Hibernated"
    PAUSED = "Paused"
    QUORUM_LOST = "QuorumLost"
    UNSUPPORTED = "Unsupported"
    DELETING = "Deleting"


class Step(StrEnum):
    """What a reconcile does; each has a file in roles/etcdcluster/tasks/steps/."""

    IDLE = "idle"
    FORM = "form"  # make everything for the first start
    SEAL = "seal"  # close the configuration of members that have started
    UPDATE = "update"  # bring objects to what they should be
    RENEW = "renew"  # certificates
    HIBERNATE = "hibernate"  # no pods, data kept
    WAKE = "wake"  # the same pods again


@dataclass(frozen=True)
class Plan:
    phase: Phase
    reason: str  # one word, for conditions and events
    message: str  # for a person
    step: Step = Step.IDLE
    apply: tuple[Manifest, ...] = ()
    delete_pods: tuple[str, ...] = ()
    certificates: bool = False  # issue what is missing or due
    cluster_id: str | None = None
    requeue: int = SOON


# From, to, and when: what the diagram shows.
TRANSITIONS = (
    (Phase.PENDING, Phase.BOOTSTRAPPING, "objects are made"),
    (Phase.BOOTSTRAPPING, Phase.RUNNING, "every member serves"),
    (Phase.BOOTSTRAPPING, Phase.DEGRADED, "a quorum serves, some members don't"),
    (Phase.RUNNING, Phase.DEGRADED, "a member does not serve"),
    (Phase.DEGRADED, Phase.RUNNING, "every member serves"),
    (Phase.DEGRADED, Phase.QUORUM_LOST, "fewer than a quorum serve"),
    (Phase.DEGRADED, Phase.STARTING, "fewer than a quorum serve, pods are starting"),
    (Phase.STARTING, Phase.RUNNING, "every member serves"),
    (Phase.STARTING, Phase.QUORUM_LOST, "pods do not come up"),
    (Phase.QUORUM_LOST, Phase.RUNNING, "the members are back"),
    (Phase.RUNNING, Phase.HIBERNATED, "size 0"),
    (Phase.HIBERNATED, Phase.STARTING, "size above 0"),
    (Phase.RUNNING, Phase.PAUSED, "paused"),
    (Phase.PAUSED, Phase.RUNNING, "no longer paused"),
    (Phase.PENDING, Phase.UNSUPPORTED, "what is asked for can't be done"),
    (Phase.UNSUPPORTED, Phase.PENDING, "it was put right"),
    (Phase.RUNNING, Phase.DELETING, "deleted"),
)


def plan(cluster: Cluster, seen: Observed) -> Plan:
    """The next step."""
    if cluster.deleting:
        return Plan(Phase.DELETING, "Deleting", "The cluster is being deleted.")
    if cluster.paused:
        return Plan(
            Phase.PAUSED,
            "Paused",
            "The operator leaves this cluster alone until spec.paused is false.",
            requeue=SETTLED,
        )
    if seen.cluster_id is None:
        return _first_start(cluster, seen)
    if cluster.size == 0:
        return _hibernate(cluster, seen)
    return _run(cluster, seen)


def rejected(planned: Plan, why: str) -> Plan:
    """The plan instead, when Kubernetes would refuse its objects: say so and leave everything as it is."""
    message = f"Kubernetes refuses what the spec asks for; correct spec.pod. {why}"
    return Plan(Phase.UNSUPPORTED, "Rejected", message, cluster_id=planned.cluster_id, requeue=WATCHFUL)


def _first_start(cluster: Cluster, seen: Observed) -> Plan:
    if refusal := _refusal(cluster, seen):
        return refusal
    live = seen.objects.get(f"StatefulSet/{cluster.name}")
    # A first start that is under way is finished at its own size.
    size = live["spec"]["replicas"] if live else cluster.size
    if size == 0:
        return Plan(Phase.HIBERNATED, "NeverStarted", "Set spec.size to start the cluster.", requeue=SETTLED)
    pods = [cluster.pod_name(ordinal) for ordinal in range(size)]
    serving = [pod for pod in pods if _serves(seen, pod)]
    if len(serving) >= manifests.quorum(size):
        return _formed(cluster, seen, pods, serving)
    wanted = manifests.objects(replace(cluster, size=size), size, config.forming(cluster, pods))
    changed = _changed(wanted, seen)
    template_hash = wanted[-1]["spec"]["template"]["metadata"]["annotations"][manifests.TEMPLATE_HASH]
    # Nothing can be lost yet: pods that can't start are made anew when the spec was corrected.
    stale = tuple(pod.name for pod in seen.pods if pod.template_hash != template_hash and not pod.deleting)
    if changed or stale or seen.certificates.missing:
        return Plan(
            Phase.BOOTSTRAPPING,
            "Bootstrapping",
            f"Starting {_count(size)} for the first time.",
            Step.FORM,
            apply=changed,
            delete_pods=stale,
            certificates=bool(seen.certificates.missing),
        )
    troubles = _troubles(seen, pods)
    message = f"Waiting for a quorum: {len(serving)} of {_count(size)} serve.{troubles}"
    return Plan(Phase.BOOTSTRAPPING, "Bootstrapping", message)


def _formed(cluster: Cluster, seen: Observed, pods: list[str], serving: list[str]) -> Plan:
    """The first quorum: from here on no member may start a cluster of its own."""
    status = seen.answers[serving[0]].status
    files = config.formed(cluster, pods, joining=set(pods) - set(serving))
    config_map = next(o for o in manifests.objects(cluster, len(pods), files) if o["kind"] == "ConfigMap")
    return Plan(
        Phase.BOOTSTRAPPING,
        "Formed",
        f"The cluster has formed: {len(serving)} of {_count(len(pods))} serve.",
        Step.SEAL,
        apply=(config_map,),
        cluster_id=f"{status.cluster_id:x}" if status else None,
    )


def _hibernate(cluster: Cluster, seen: Observed) -> Plan:
    live = seen.objects.get(f"StatefulSet/{cluster.name}")
    if live and live["spec"]["replicas"] > 0:
        wanted = _wanted(cluster, seen, replicas=0)
        return Plan(
            Phase.HIBERNATED,
            "Hibernating",
            "Stopping every member; the data is kept.",
            Step.HIBERNATE,
            apply=(wanted[-1],),
        )
    if seen.pods:
        return Plan(Phase.HIBERNATED, "Hibernating", f"Waiting for {_count(len(seen.pods))} to stop.")
    return Plan(
        Phase.HIBERNATED, "Hibernated", "No member runs; the data is kept. Set spec.size to wake it.", requeue=SETTLED
    )


def _run(cluster: Cluster, seen: Observed) -> Plan:
    pods = _member_pods(cluster, seen)
    if not pods:
        return Plan(
            Phase.UNSUPPORTED,
            "EverythingLost",
            f"ConfigMap {cluster.config_map}, the StatefulSet and all claims are gone; restore from a backup.",
            requeue=SETTLED,
        )
    live = seen.objects.get(f"StatefulSet/{cluster.name}")
    if live and live["spec"]["replicas"] == 0:
        return Plan(
            Phase.STARTING,
            "Waking",
            f"Starting {_count(len(pods))} with their data.",
            Step.WAKE,
            apply=_changed(_wanted(cluster, seen, len(pods)), seen),
            certificates=bool(seen.certificates.missing or seen.certificates.due),
        )
    health = _health(cluster, seen, pods)
    changed = _changed(_wanted(cluster, seen, len(pods)), seen)
    if seen.certificates.missing or seen.certificates.due:
        names = ", ".join(seen.certificates.missing + seen.certificates.due)
        return replace(health, step=Step.RENEW, certificates=True, requeue=SOON, message=f"Renewing {names}.")
    if changed:
        step = Step.SEAL if [o["kind"] for o in changed] == ["ConfigMap"] else Step.UPDATE
        return replace(health, step=step, apply=changed, requeue=SOON)
    return health


def _health(cluster: Cluster, seen: Observed, pods: list[str]) -> Plan:
    serving = [pod for pod in pods if _serves(seen, pod)]
    needed = manifests.quorum(len(pods))
    troubles = _troubles(seen, [pod for pod in pods if pod not in serving])
    if len(serving) == len(pods):
        return _healthy(cluster, seen, pods)
    if len(serving) >= needed:
        message = f"{len(serving)} of {_count(len(pods))} serve; {needed} are needed.{troubles}"
        return Plan(Phase.DEGRADED, "MembersDown", message, requeue=WATCHFUL)
    starting = [pod for pod in seen.pods if not pod.deleting and seen.now - pod.created < _STARTING]
    missing = [pod for pod in pods if seen.pod(pod) is None]
    if starting or missing:
        message = f"{len(serving)} of {_count(len(pods))} serve; {needed} are needed. Pods are starting.{troubles}"
        return Plan(Phase.STARTING, "Starting", message)
    message = (
        f"Only {len(serving)} of {_count(len(pods))} serve and {needed} are needed, so nothing can be read or written."
        f"{troubles} Nothing is deleted: bring the pods or their nodes back, or restore from a backup."
    )
    return Plan(Phase.QUORUM_LOST, "QuorumLost", message, requeue=WATCHFUL)


def _healthy(cluster: Cluster, seen: Observed, pods: list[str]) -> Plan:
    notes = []
    if cluster.size != len(pods):
        notes.append(
            f"spec.size is {cluster.size}: changing the size of a running cluster is not supported yet, so it stays."
        )
    wanted = manifests.pod_template(cluster)["metadata"]["annotations"][manifests.TEMPLATE_HASH]
    stale = [pod.name for pod in seen.pods if pod.template_hash != wanted]
    if stale:
        notes.append(f"{', '.join(stale)} still run with the former settings; delete one pod at a time to renew it.")
    if seen.certificates.problem:
        notes.append(seen.certificates.problem)
    reason = "AllMembersServe" if not notes else "ChangePending"
    message = " ".join([f"All {_count(len(pods))} serve." if len(pods) > 1 else "The member serves.", *notes])
    return Plan(Phase.RUNNING, reason, message, requeue=SETTLED)


def _refusal(cluster: Cluster, seen: Observed) -> Plan | None:
    """Why a cluster can't be started at all."""
    foreign = sorted(claim.name for claim in seen.claims if claim.cluster_uid != cluster.uid)
    if foreign:
        return _unsupported(
            "ForeignData",
            f"{', '.join(foreign)} hold data of an earlier cluster of this name, which is never taken over silently. "
            "Delete these claims if the data is not needed, or use another name.",
        )
    if seen.certificates.problem:
        return _unsupported("BrokenSecret", seen.certificates.problem)
    if seen.storage_class_missing:
        return _unsupported(
            "StorageClassMissing",
            f"There is no StorageClass {cluster.storage.class_name}; create it, or delete this EtcdCluster and name "
            "another one in spec.storage.className.",
        )
    return None


def _unsupported(reason: str, message: str) -> Plan:
    return Plan(Phase.UNSUPPORTED, reason, message, requeue=WATCHFUL)


def _member_pods(cluster: Cluster, seen: Observed) -> list[str]:
    """Who the members are: the ConfigMap has a file for each, and outlives the pods."""
    files = seen.objects.get(f"ConfigMap/{cluster.config_map}", {}).get("data", {})
    replicas = seen.objects.get(f"StatefulSet/{cluster.name}", {}).get("spec", {}).get("replicas", 0)
    number = len(files) or replicas or len(seen.claims)
    return [cluster.pod_name(ordinal) for ordinal in range(number)]


def _wanted(cluster: Cluster, seen: Observed, replicas: int) -> list[Manifest]:
    """The objects of a cluster that has formed."""
    pods = _member_pods(cluster, seen)
    files = seen.objects.get(f"ConfigMap/{cluster.config_map}", {}).get("data", {})
    joining = {pod for pod in pods if _is_open(cluster, pod, files) and not _answers(seen, pod)}
    wanted = manifests.objects(replace(cluster, size=len(pods)), replicas, config.formed(cluster, pods, joining))
    live = seen.objects.get(f"StatefulSet/{cluster.name}")
    if live and "volumeClaimTemplates" in wanted[-1]["spec"]:  # can't be changed in place
        wanted[-1]["spec"]["volumeClaimTemplates"] = live["spec"].get("volumeClaimTemplates", [])
    return wanted


def _is_open(cluster: Cluster, pod: str, files: Manifest) -> bool:
    """Has this member yet to start for the first time? A file that is gone is made anew as a sealed one."""
    text = files.get(config.file_name(pod))
    return text is not None and not config.is_sealed(cluster, pod, text)


def _changed(wanted: list[Manifest], seen: Observed) -> tuple[Manifest, ...]:
    return tuple(
        manifest
        for manifest in wanted
        if manifests.differs(manifest, seen.objects.get(f"{manifest['kind']}/{manifest['metadata']['name']}"))
    )


def _answers(seen: Observed, pod: str) -> bool:
    answer = seen.answers.get(pod)
    return answer is not None and answer.status is not None


def _serves(seen: Observed, pod: str) -> bool:
    answer = seen.answers.get(pod)
    return answer is not None and answer.healthy


def _troubles(seen: Observed, pods: list[str]) -> str:
    """What is known of members that don't serve."""
    words = []
    for name in pods:
        pod, answer = seen.pod(name), seen.answers.get(name)
        if pod is None:
            words.append(f"{name} has no pod")
        elif pod.problem:
            words.append(f"{name}: {pod.problem}")
        elif answer is not None and not answer.healthy:
            words.append(f"{name}: {answer.error}")
    return f" {'; '.join(words)}." if words else ""


def _count(number: int) -> str:
    return "1 member" if number == 1 else f"{number} members"
