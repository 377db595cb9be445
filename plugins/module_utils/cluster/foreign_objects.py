"""Objects that have a name which the cluster needs, and that belong to something else. Pure.

They are not used, changed or deleted. Before the first quorum nothing starts beside them. A cluster that runs goes on
with everything that does not need them, and looks again until the name is free.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..api.backup import REQUESTED_BY
from ..api.cluster import Cluster
from ..kube.manifest import Manifest
from ..kube.ownership import is_left_over, is_owned
from ..plan import PATIENT, WATCHFUL, Plan
from . import desired
from .actions import SealConfiguration
from .health import auth_required, health
from .manifests import owner
from .observation import Claim, Foreign
from .plan import Phase, Reason
from .situation import Situation

# Without these no member can be changed.
_ESSENTIAL = ("ConfigMap", "StatefulSet")
_SETTLED = (Reason.ALL_HEALTHY, Reason.CHANGE_PENDING, Reason.HIBERNATED)


def foreign_among(cluster: Cluster, found: Iterable[Manifest]) -> tuple[Foreign, ...]:
    """Those that belong to something else. The Secrets that a user provides are the user's."""
    return tuple(
        Foreign(each["kind"], each["metadata"]["name"], left_over=is_left_over(each, owner(cluster)))
        for each in found
        if not _is_own(cluster, each)
    )


def _is_own(cluster: Cluster, manifest: Manifest) -> bool:
    if manifest["kind"] == "EtcdBackup":  # outlives the EtcdCluster; its name has part of the uid
        noted = manifest["metadata"].get("annotations") or {}
        return bool(noted.get(REQUESTED_BY) == f"EtcdCluster/{cluster.name}")
    provided = manifest["kind"] == "Secret" and cluster.tls.mode == "Provided"
    return provided or is_owned(manifest, cluster.uid)


def told(names: Iterable[object]) -> str:
    """What a person is told about foreign objects."""
    return (
        f"{', '.join(map(str, names))}: not made for this EtcdCluster, so the operator does not use, change or delete "
        "it. Delete it if it is not needed, or use another name for the EtcdCluster."
    )


def refuse_start(s: Situation) -> Plan | None:
    """Before the first quorum: why nothing is created; None when every name is free."""
    found = [each for each in s.observed.foreign if not each.left_over]
    claims = [claim for claim in s.observed.claims if not claim.cluster_uid]
    if found or claims:
        names = [*map(str, found), *(f"PVC {claim.name}" for claim in claims)]
        return Plan(Phase.UNSUPPORTED, Reason.FOREIGN_OBJECT, told(names), requeue=WATCHFUL)
    if s.observed.foreign:
        names = [str(each) for each in s.observed.foreign]
        message = f"Waiting for Kubernetes to delete {', '.join(names)} of an earlier EtcdCluster of this name."
        return Plan(Phase.BOOTSTRAPPING, Reason.BOOTSTRAPPING, message, requeue=WATCHFUL)
    return None


def foreign_claims(s: Situation, pods: Iterable[str]) -> list[Claim]:
    """The PVCs of these pods that were not made for any EtcdCluster."""
    found = (s.observed.claim(pod) for pod in pods)
    return [claim for claim in found if claim and not claim.cluster_uid]


def obstacle(s: Situation) -> str:
    """The foreign objects without which no member can be changed, and what to do; "" for none."""
    found = [each for each in s.observed.foreign if each.kind in _ESSENTIAL]
    return told(found) if found else ""


def blocked(s: Situation) -> Plan | None:
    """On a running cluster: what is known of its members, if none of them can be changed."""
    if s.cluster.tls.mode == "Managed" and s.observed.foreign_name("Secret", s.cluster.secret("operator")):
        ready = sum(pod.ready for pod in s.observed.pods)
        total = len(s.observed.pods)
        message = f"{_all_told(s)} The operator can't connect to the members: {ready} of {total} pods are ready."
        return Plan(Phase.UNSUPPORTED, Reason.FOREIGN_OBJECT, message, requeue=WATCHFUL)
    if not obstacle(s):
        return None
    if s.observed.view.needs_auth:
        return auth_required(s)
    if s.cluster.size == 0 and not s.observed.pods:
        return Plan(Phase.HIBERNATED, Reason.HIBERNATED, "No member runs; the data is kept.", requeue=WATCHFUL)
    # Members that have started are sealed at any rate.
    files = desired.changed((desired.for_members(s, s.membership).config_map,), s) if s.membership else ()
    return replace(health(s), action=SealConfiguration(files)) if files else health(s)


def reported(s: Situation, planned: Plan) -> Plan:
    """The plan, with what is foreign; the reason too, unless there is a more urgent one."""
    if planned.phase in (Phase.DELETING, Phase.PAUSED) or planned.reason is Reason.FOREIGN_OBJECT:
        return planned
    if s.observed.memory.cluster_id is None:
        return planned
    if s.observed.foreign:
        reason = Reason.FOREIGN_OBJECT if planned.reason in _SETTLED else planned.reason
        message = f"{planned.message} {_all_told(s)}"
        return replace(planned, reason=reason, message=message, requeue=min(planned.requeue, PATIENT))
    if planned.reason in _SETTLED and (shared := s.observed.certificates.shared):
        message = f"{planned.message} {_shared(shared)}"
        return replace(planned, reason=Reason.SHARED_CA, message=message)
    return planned


def _shared(others: Iterable[str]) -> str:
    return (
        f"A CA of this EtcdCluster is also that of {', '.join(others)}: each accepts certificates of the other. "
        "Restore a backup into an EtcdCluster with another name, and delete this one. See docs/using.md."
    )


def _all_told(s: Situation) -> str:
    return told(s.observed.foreign)


def refuse_backup(s: Situation, name: str, phase: Phase) -> Plan | None:
    """Why no EtcdBackup of this name can be created; None when it can."""
    if not s.observed.foreign_name("EtcdBackup", name):
        return None
    message = (
        f"EtcdBackup {name}: not made for this EtcdCluster, so it is neither used nor deleted, and no snapshot can be "
        "taken. Delete it."
    )
    return Plan(phase, Reason.FOREIGN_OBJECT, message, requeue=WATCHFUL)
