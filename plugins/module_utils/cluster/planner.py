"""What to do next: a pure function from what is wanted and what is there to one step, and the reason in a user's words.

This is the state machine; docs/states.md is drawn from plan.TRANSITIONS by `make generate`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from ..api.cluster import Cluster
from ..etcd.membership import quorum
from . import config, desired, manifests, upgrade
from . import scaling as members
from . import volumes as expansion
from .loss import loss
from .observation import Observed, Pod
from .plan import PATIENT, SETTLED, SOON, WATCHFUL, Phase, Plan, Step
from .slots import Team, gather, stranger_name

# What has time until the objects are as they should be: nobody who has started stays unsealed.
_LATER = (Step.IDLE, Step.SNAPSHOT, Step.DOWNGRADE, Step.EXPAND)
_STARTING = timedelta(minutes=2)  # how long a pod may take before its silence means something


def plan(cluster: Cluster, seen: Observed) -> Plan:
    """The next step."""
    if cluster.deleting:
        return Plan(Phase.DELETING, "Deleting", "The cluster is being deleted.")
    if cluster.held_by:
        return _held(cluster, seen)
    if seen.cluster_id is not None:
        cluster = upgrade.held(cluster, seen)
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


def _held(cluster: Cluster, seen: Observed) -> Plan:
    """An EtcdRestore is at work: no member may run."""
    message = f"EtcdRestore {cluster.held_by} holds this cluster; no member runs until the data is there."
    held = Plan(Phase.RESTORING, "Restoring", message, requeue=WATCHFUL)
    if _has_pods(cluster, seen):
        stopped = desired.as_they_are(cluster, seen, 0)[-1]
        return replace(held, step=Step.HIBERNATE, apply=(stopped,), requeue=SOON)
    return replace(held, requeue=SOON) if seen.pods else held


def rejected(cluster: Cluster, planned: Plan, why: str) -> Plan:
    """The plan instead, when Kubernetes would refuse its objects: say so and leave everything as it is."""
    if planned.step is Step.EXPAND:
        return expansion.refused(cluster, why)
    message = f"Kubernetes refuses what the spec asks for; correct spec.pod. {why}"
    return Plan(Phase.UNSUPPORTED, "Rejected", message, cluster_id=planned.cluster_id, requeue=WATCHFUL)


def _first_start(cluster: Cluster, seen: Observed) -> Plan:
    live = seen.objects.get(f"StatefulSet/{cluster.name}")
    # A first start that is under way is finished at its own size.
    size = cluster.restored or (live["spec"]["replicas"] if live else cluster.size)
    pods = [cluster.pod_name(ordinal) for ordinal in range(size)]
    serving = [pod for pod in pods if _serves(seen, pod)]
    team, claims = gather(cluster, seen), [seen.claim(pod) for pod in pods]
    ours = all(claim is None or claim.cluster_uid == cluster.uid for claim in claims)
    if team and ours and len(serving) >= quorum(size):
        return _formed(cluster, seen, team, f"{len(serving)} of {_count(size)} serve")
    if refusal := _refusal(cluster, seen):
        return refusal
    if size == 0:
        return Plan(Phase.HIBERNATED, "NeverStarted", "Set spec.size to start the cluster.", requeue=SETTLED)
    # Members that were restored have their data, and none may start without.
    files = config.formed(cluster, pods, {}) if cluster.restored else config.forming(cluster, pods)
    wanted = desired.objects(cluster, seen, size, files, voters=size)
    changed = desired.changed(wanted, seen)
    template_hash = wanted[-1]["spec"]["template"]["metadata"]["annotations"][manifests.TEMPLATE_HASH]
    # Nothing can be lost yet: pods that can't start are made anew when the spec was corrected.
    stale = tuple(
        pod.name
        for pod in seen.pods
        if pod.template_hash != template_hash and not pod.deleting and not _may_have_voted(cluster, pod)
    )
    if changed or stale or seen.certificates.missing:
        return Plan(
            Phase.BOOTSTRAPPING,
            "Bootstrapping",
            f"Starting {_count(size)} for the first time.",
            Step.FORM,
            apply=changed,
            delete_pods=stale,
            certificates=bool(seen.certificates.missing),
            requeue=PATIENT,
        )
    troubles = _troubles(seen, None, pods)
    message = f"Waiting for a quorum: {len(serving)} of {_count(size)} serve.{troubles}"
    # Readiness comes as an event. To look often would take the CPU that the members need when there are many.
    requeue = WATCHFUL if any(pod.ready for pod in seen.pods) else PATIENT
    return Plan(Phase.BOOTSTRAPPING, "Bootstrapping", message, requeue=requeue)


def _may_have_voted(cluster: Cluster, pod: Pod) -> bool:
    """Would a vote be lost with this pod? One that is in memory, and may have been cast unseen.

    Who has no node yet may get one in this very moment; who has no image will not.
    """
    can_not = pod.scheduled and bool(pod.problem) and not pod.crashed and not pod.ran
    return cluster.storage.type == "Memory" and not can_not


def _formed(cluster: Cluster, seen: Observed, team: Team, serve: str) -> Plan:
    """The first quorum: from here on no member may start a cluster of its own."""
    cluster = upgrade.held(cluster, seen)
    config_map = next(each for each in desired.for_team(cluster, seen, team) if each["kind"] == "ConfigMap")
    return Plan(
        Phase.BOOTSTRAPPING,
        "Formed",
        f"The cluster has formed: {serve}.",
        Step.SEAL,
        apply=(config_map,),
        cluster_id=f"{seen.members.cluster_id:x}" if seen.members else None,
        upgrade=upgrade.already_under_way(cluster, seen, team),
    )


def _hibernate(cluster: Cluster, seen: Observed) -> Plan:
    team = gather(cluster, seen)
    if _has_pods(cluster, seen):
        # Sealed before they stop, as far as a quorum tells who has started.
        wanted = desired.for_team(cluster, seen, team) if team else desired.as_they_are(cluster, seen, 0)
        wanted[-1]["spec"]["replicas"] = 0
        message = "Stopping every member; the data is kept."
        return Plan(Phase.HIBERNATED, "Hibernating", message, Step.HIBERNATE, apply=desired.changed(wanted, seen))
    if seen.pods:
        stopping = Plan(Phase.HIBERNATED, "Hibernating", f"Waiting for {_count(len(seen.pods))} to stop.")
        sealed = [each for each in desired.for_team(cluster, seen, team) if each["kind"] == "ConfigMap"] if team else []
        changed = desired.changed(sealed, seen)
        return replace(stopping, step=Step.SEAL, apply=changed) if changed else stopping
    return Plan(
        Phase.HIBERNATED, "Hibernated", "No member runs; the data is kept. Set spec.size to wake it.", requeue=SETTLED
    )


def _has_pods(cluster: Cluster, seen: Observed) -> bool:
    """Is there a StatefulSet with pods, or pods that only a StatefulSet can stop?"""
    orphans = f"StatefulSet/{cluster.name}" not in seen.objects and any(not pod.deleting for pod in seen.pods)
    return orphans or desired.replicas(cluster, seen) > 0


def _run(cluster: Cluster, seen: Observed) -> Plan:
    pods = desired.member_pods(cluster, seen)
    if not pods:
        return Plan(
            Phase.UNSUPPORTED,
            "EverythingLost",
            f"ConfigMap {cluster.config_map}, the StatefulSet and all claims are gone; restore from a backup.",
            requeue=SETTLED,
        )
    number = 1 + max(cluster.ordinal(pod) or 0 for pod in pods)
    live = seen.objects.get(f"StatefulSet/{cluster.name}")
    if live and live["spec"]["replicas"] == 0:
        return Plan(
            Phase.STARTING,
            "Waking",
            f"Starting {_count(len(pods))} with their data.",
            Step.WAKE,
            apply=desired.changed(desired.as_they_are(cluster, seen, number), seen),
            certificates=bool(seen.certificates.missing or seen.certificates.due),
        )
    return _run_on(cluster, seen, number)


def _run_on(cluster: Cluster, seen: Observed, number: int) -> Plan:
    """There are pods, or should be."""
    team = gather(cluster, seen)
    health = _health(cluster, seen, team)
    if seen.certificates.missing or seen.certificates.due:
        names = ", ".join(seen.certificates.missing + seen.certificates.due)
        return replace(health, step=Step.RENEW, certificates=True, requeue=SOON, message=f"Renewing {names}.")
    planned = (members.change(cluster, seen, team) if team else None) or health
    # Claims that can't grow keep nothing else from being done.
    rests = planned is health or planned.reason == "ExpansionRefused"
    if team and rests and health.phase is Phase.RUNNING:
        planned = upgrade.finish(cluster, seen, team, planned)
    if planned.step not in _LATER:
        return planned
    if team is None:
        cluster = upgrade.corrected(cluster, seen)
    wanted = desired.for_team(cluster, seen, team) if team else desired.as_they_are(cluster, seen, number)
    if changed := desired.changed(wanted, seen):
        step = Step.SEAL if [each["kind"] for each in changed] == ["ConfigMap"] else Step.UPDATE
        return Plan(planned.phase, planned.reason, planned.message, step, apply=changed)
    if team is None and (stuck := _stuck(seen, manifests.template_hash(wanted[-1]))):
        return replace(planned, step=Step.UPDATE, delete_pods=stuck, requeue=SOON)
    return planned


def _stuck(seen: Observed, wanted: str) -> tuple[str, ...]:
    """Pods that never ran, and that the StatefulSet would make otherwise by now: nothing is in them."""
    return tuple(
        pod.name
        for pod in seen.pods
        if pod.template_hash != wanted and pod.problem and not pod.deleting and not pod.crashed and not pod.ran
    )


def _health(cluster: Cluster, seen: Observed, team: Team | None) -> Plan:
    """How the voters are; when no quorum tells who they are, those that the ConfigMap tells of."""
    voters = [seat.name for seat in team.voters] if team else desired.started(cluster, seen)
    votes = team.votes if team else len(voters)
    serving = [pod for pod in voters if _serves(seen, pod)]
    needed = quorum(votes)
    notes, strange = _notes(cluster, seen, team), "UnknownMember" if team and team.strangers else ""
    troubles = _troubles(seen, team, [pod for pod in voters if pod not in serving])
    if len(serving) == votes:
        message = f"All {_count(votes)} serve." if votes > 1 else "The member serves."
        reason = strange or ("ChangePending" if notes else "AllMembersServe")
        return Plan(Phase.RUNNING, reason, f"{message} {notes}".strip(), requeue=_until_next_look(seen, voters))
    fresh = seen.unwell_since is None or seen.now - seen.unwell_since < _STARTING
    said = f"{len(serving)} of {_count(votes)} serve; {needed} are needed."
    if len(serving) >= needed:
        # What a member said last is no event; but nobody needs to look every second for hours.
        requeue = SOON if fresh else WATCHFUL
        return Plan(Phase.DEGRADED, strange or "MembersDown", f"{said}{troubles} {notes}".strip(), requeue=requeue)
    lost = [pod for pod in voters if _is_lost(seen, pod)]
    hope = votes - len(lost) >= needed
    if hope and any(_is_coming(seen, pod) for pod in voters if pod not in serving):
        return Plan(Phase.STARTING, "Starting", f"{said} Pods are starting.{troubles}")
    answering = [pod for pod in voters if (answer := seen.answers.get(pod)) and answer.status]
    if hope and len(answering) >= needed and fresh and seen.phase != Phase.QUORUM_LOST:
        return Plan(Phase.STARTING, "NoLeader", f"{said} The members are electing a leader.{troubles}")
    message = (
        f"Only {len(serving)} of {_count(votes)} serve and {needed} are needed, so nothing can be read or written."
        f"{troubles} Nothing is deleted: bring the pods or their nodes back, or restore from a backup."
    )
    return Plan(Phase.QUORUM_LOST, "QuorumLost", message, requeue=WATCHFUL)


def _until_next_look(seen: Observed, voters: list[str]) -> int:
    """All serve. Only a pod that is ready makes an event when it is so no more: others are looked at again.

    A member answers for a moment while its pod is being deleted already.
    """
    pods = [seen.pod(name) for name in voters]
    if all(pod and pod.ready and not pod.deleting for pod in pods):
        return SETTLED
    unready = [name for name, pod in zip(voters, pods, strict=True) if not pod or pod.deleting or not pod.ready]
    return SOON if any(_is_coming(seen, name) for name in unready) else WATCHFUL


def _notes(cluster: Cluster, seen: Observed, team: Team | None) -> str:
    """What a person should know though the voters are well."""
    notes = []
    if team and team.strangers:
        names = "; ".join(stranger_name(member) for member in team.strangers)
        notes.append(
            f"Members that this EtcdCluster did not add: {names}. They are left alone, and the size is not changed "
            "while they are there; if they are not meant to be, remove them with etcdctl member remove."
        )
    if cluster.target:
        notes.append(f"The way to {cluster.target} waits until every member serves.")
    if seen.certificates.problem:
        notes.append(seen.certificates.problem)
    return " ".join(notes)


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


def _serves(seen: Observed, pod: str) -> bool:
    answer = seen.answers.get(pod)
    return answer is not None and answer.healthy


def _is_coming(seen: Observed, name: str) -> bool:
    """A pod is on its way: it is young, or there is none, or the former one is going."""
    pod = seen.pod(name)
    return pod is None or pod.deleting or seen.now - pod.created < _STARTING


def _is_lost(seen: Observed, name: str) -> bool:
    return not _serves(seen, name) and bool(loss(seen.pod(name), seen.claim(name), others_well=False))


def _troubles(seen: Observed, team: Team | None, pods: list[str]) -> str:
    """What is known of members that don't serve."""
    lost = {seat.name: seat.lost for seat in team.seats if seat.lost} if team else {}
    words = []
    for name in pods:
        pod, answer = seen.pod(name), seen.answers.get(name)
        if why := lost.get(name) or loss(pod, seen.claim(name), others_well=False):
            words.append(f"{name}: {why}")
        elif pod is None:
            words.append(f"{name} has no pod")
        elif pod.problem:
            words.append(f"{name}: {pod.problem}")
        elif answer is not None and not answer.healthy:
            words.append(f"{name}: {answer.error}")
    return f" {'; '.join(words)}." if words else ""


def _count(number: int) -> str:
    return "1 member" if number == 1 else f"{number} members"
