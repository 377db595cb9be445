"""The first start of a cluster, until its first quorum. Pure."""

from __future__ import annotations

from ..api import images
from ..etcd.membership import quorum
from ..etcd.versions import parse
from ..plan import PATIENT, SETTLED, WATCHFUL, Plan
from . import desired, foreign_objects, member_config
from .actions import FormCluster, SealConfiguration
from .health import auth_required, count, problems
from .membership import Membership
from .memory import Upgrade, upgrade_record
from .observation import Pod
from .plan import Phase, Reason
from .situation import Situation


def first_start(s: Situation) -> Plan:
    # A first start in progress is finished at its own size.
    size = s.cluster.restored or (s.replicas if s.stateful_set else s.cluster.size)
    pods = [s.cluster.pod_name(ordinal) for ordinal in range(size)]
    healthy = [pod for pod in pods if s.healthy(pod)]
    claims = [s.observed.claim(pod) for pod in pods]
    own = all(claim is None or claim.cluster_uid == s.cluster.uid for claim in claims)
    may_seal = own and not s.observed.foreign_name("ConfigMap", s.cluster.config_map)
    if s.membership and may_seal and len(healthy) >= quorum(size):
        return _formed(s.as_rendered(), s.membership, f"{len(healthy)} of {count(size)} are healthy")
    if s.observed.view.needs_auth:  # restored data brings its users
        return auth_required(s)
    if refusal := _refusal(s):
        return refusal
    if size == 0:
        return Plan(Phase.HIBERNATED, Reason.NEVER_STARTED, "Set spec.size to start the cluster.", requeue=SETTLED)
    return _start(s, size, pods) or _wait(s, size, pods, healthy)


def _start(s: Situation, size: int, pods: list[str]) -> Plan | None:
    """Create what is missing; None when everything is there."""
    if s.cluster.restored:  # members that were restored have their data, and none may start without
        files = member_config.formed(s.cluster, s.version, pods, {})
    else:
        files = member_config.forming(s.cluster, s.version, pods)
    wanted = desired.objects(s, size, files, voters=size)
    changed = desired.changed(wanted, s)
    # Nothing can be lost yet: pods that can't start are made again when the spec was corrected.
    stale = tuple(
        pod.ref
        for pod in s.observed.pods
        if pod.template_hash != wanted.template_hash and not pod.deleting and not _may_have_voted(s, pod)
    )
    missing = bool(s.observed.certificates.missing)
    if not (changed or stale or missing):
        return None
    message = f"Starting {count(size)} for the first time."
    action = FormCluster(changed, missing, stale)
    return Plan(Phase.BOOTSTRAPPING, Reason.BOOTSTRAPPING, message, action, requeue=PATIENT)


def _wait(s: Situation, size: int, pods: list[str], healthy: list[str]) -> Plan:
    message = f"Waiting for a quorum: {len(healthy)} of {count(size)} are healthy.{problems(s, pods)}"
    # Readiness arrives as an event. To look often would take the CPU that the members need when there are many.
    requeue = WATCHFUL if any(pod.ready for pod in s.observed.pods) else PATIENT
    return Plan(Phase.BOOTSTRAPPING, Reason.BOOTSTRAPPING, message, requeue=requeue)


def _may_have_voted(s: Situation, pod: Pod) -> bool:
    """Whether a vote would be lost with this pod: one that is in memory, and may have been cast already.

    A pod without a node may get one at this very moment; a pod without an image can't have run.
    """
    impossible = pod.scheduled and bool(pod.problem) and not pod.crashed and not pod.started
    return s.in_memory and not impossible


def _formed(s: Situation, members: Membership, told: str) -> Plan:
    """The first quorum: from here on no member may start a cluster of its own."""
    return Plan(
        Phase.BOOTSTRAPPING,
        Reason.FORMED,
        f"The cluster has formed: {told}.",
        SealConfiguration((desired.conditional(desired.for_members(s, members).config_map, s),)),
        record={"clusterID": f"{s.observed.view.cluster_id:x}", **upgrade_record(_upgrade(s, members))},
    )


def _upgrade(s: Situation, members: Membership) -> Upgrade | None:
    """The upgrade in progress when the version was corrected while members started with another one."""
    runs = min(members.versions, key=parse, default=s.version)
    return Upgrade(runs, s.version, s.observed.now) if runs != s.version else None


def _refusal(s: Situation) -> Plan | None:
    """Why the cluster can't be started at all."""
    if refused := foreign_objects.refuse_start(s):
        return refused
    foreign = sorted(claim.name for claim in s.observed.claims if claim.cluster_uid != s.cluster.uid)
    if foreign:
        return _unsupported(
            Reason.FOREIGN_DATA,
            f"PVC {', '.join(foreign)} holds data of an earlier cluster of this name and is never adopted. Delete it "
            "if the data is not needed, or use another name.",
        )
    if why := images.refusal(s.cluster, s.observed.allowed_repositories):
        return _unsupported(Reason.IMAGE_NOT_ALLOWED, f"{why}.")
    if s.observed.certificates.problem:
        return _unsupported(Reason.INVALID_SECRET, s.observed.certificates.problem)
    if s.observed.storage_class_missing:
        return _unsupported(
            Reason.STORAGE_CLASS_MISSING,
            f"There is no StorageClass {s.cluster.storage.class_name}. Create it, or delete this EtcdCluster and name "
            "another one in spec.storage.className.",
        )
    return None


def _unsupported(reason: Reason, message: str) -> Plan:
    return Plan(Phase.UNSUPPORTED, reason, message, requeue=WATCHFUL)
