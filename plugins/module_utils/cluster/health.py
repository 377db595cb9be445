"""How healthy the voters are, and what a person is told about it. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from ..etcd.membership import quorum
from ..plan import PATIENT, SETTLED, SOON, WATCHFUL, Plan
from . import desired, volumes
from .loss import loss
from .membership import display
from .plan import Phase, Reason
from .situation import Situation

STARTING = timedelta(minutes=2)  # how long a pod may take before its silence means something
_ELECTION = timedelta(seconds=10)  # how long a cluster may have no leader before its phase changes
# The phases in which a quorum was healthy.
_WITH_QUORUM = (
    Phase.RUNNING,
    Phase.SCALING,
    Phase.REPAIRING,
    Phase.UPGRADING,
    Phase.RESTARTING,
    Phase.EXPANDING,
    Phase.DEGRADED,
)


def health(s: Situation) -> Plan:
    """The health of the voters; when no quorum reports them, of those that the ConfigMap records."""
    voters = [slot.name for slot in s.membership.voters] if s.membership else desired.started(s)
    votes = s.membership.votes if s.membership else len(voters)
    healthy = [pod for pod in voters if s.healthy(pod)]
    needed = quorum(votes)
    notes = _notes(s)
    unmanaged = bool(s.membership and s.membership.unmanaged)
    if len(healthy) == votes:
        message = f"All {count(votes)} are healthy." if votes > 1 else "The member is healthy."
        reason = Reason.CHANGE_PENDING if notes else Reason.ALL_HEALTHY
        reason = Reason.UNMANAGED_MEMBER if unmanaged else reason
        message = " ".join(filter(None, (message, notes, volumes.remark(s))))
        return Plan(Phase.RUNNING, reason, message, requeue=_until_next_look(s, voters))
    told = f"{len(healthy)} of {count(votes)} are healthy; {needed} are needed."
    unhealthy = [pod for pod in voters if pod not in healthy]
    known = problems(s, unhealthy)
    since = s.observed.memory.unhealthy_since
    fresh = since is None or s.observed.now - since < STARTING
    if len(healthy) >= needed:
        # The end of a log causes no event; but there is no need to look every second for hours.
        reason = Reason.UNMANAGED_MEMBER if unmanaged else Reason.MEMBERS_DOWN
        requeue = SOON if fresh else WATCHFUL
        message = " ".join(filter(None, (f"{told}{known}", _advice(s, unhealthy), notes)))
        return Plan(Phase.DEGRADED, reason, message, requeue=requeue)
    return _without_quorum(s, voters, unhealthy, told, known)


def _without_quorum(s: Situation, voters: list[str], unhealthy: list[str], told: str, known: str) -> Plan:
    """Less than a quorum is healthy: for a moment, until pods have started, or until a person acts."""
    votes = s.membership.votes if s.membership else len(voters)
    needed, since = quorum(votes), _unavailable_since(s)
    possible = votes - sum(_is_lost(s, pod) for pod in unhealthy) >= needed
    answering = sum(s.answer(pod) is not None for pod in voters)
    ready = sum(pod.ready and not pod.deleting for pod in s.observed.pods)
    kept = _kept_phase(s) if possible else None
    if kept and answering < needed <= ready:
        return Plan(kept, Reason.MISSED, f"{told} The pods are ready, and the operator asks the members again.{known}")
    coming = any(is_coming(s, pod) for pod in unhealthy)
    electing = since is None or s.observed.now - since < STARTING
    lost = s.observed.memory.phase == Phase.QUORUM_LOST
    if possible and answering >= needed and (kept or (electing and not coming and not lost)):
        message = f"{told} The members are electing a leader.{known}"
        return Plan(kept or Phase.STARTING, Reason.NO_LEADER, message)
    if possible and coming:
        return Plan(Phase.STARTING, Reason.STARTING, f"{told} Pods are starting.{known}")
    message = (
        f"Quorum lost: {told} Reads and writes fail.{known} Nothing is deleted. Bring the pods or their nodes back, or "
        "restore from a backup."
    )
    return Plan(Phase.QUORUM_LOST, Reason.QUORUM_LOST, message, requeue=WATCHFUL)


def auth_required(s: Situation) -> Plan:
    """Auth was enabled behind the operator's back: its members may be healthy, but it can't act."""
    ready = [pod.name for pod in s.observed.pods if pod.ready]
    message = (
        f"etcd's auth is enabled and refuses the operator, so the operator changes no member. {len(ready)} of "
        f"{len(s.observed.pods)} pods are ready. Disable auth: etcdctl --user root auth disable. See docs/repair.md."
    )
    return Plan(Phase.AUTH_REQUIRED, Reason.AUTH_REQUIRED, message, requeue=PATIENT)


def _kept_phase(s: Situation) -> Phase | None:
    """The phase so far, while the members have had no leader for a moment only; the conditions tell of it."""
    since = _unavailable_since(s)
    if since is not None and s.observed.now - since >= _ELECTION:
        return None
    return next((phase for phase in _WITH_QUORUM if phase == s.observed.memory.phase), None)


def _unavailable_since(s: Situation) -> datetime | None:
    """Since when it has been as now: members answer without a quorum, or none answers. None when this is new."""
    memory = s.observed.memory
    return memory.unavailable_since if s.observed.view.answered else memory.unanswered_since


def is_coming(s: Situation, name: str) -> bool:
    """Whether a pod is on its way: it is young, or there is none, or the former one is being deleted."""
    pod = s.observed.pod(name)
    return pod is None or pod.deleting or s.observed.now - pod.created < STARTING


def count(number: int) -> str:
    return "1 member" if number == 1 else f"{number} members"


def _until_next_look(s: Situation, voters: list[str]) -> int:
    """All are healthy. Only a pod that is ready causes an event when it no longer is: others are looked at again.

    A member answers for a moment while its pod is being deleted already.
    """
    pods = {name: s.observed.pod(name) for name in voters}
    unready = [name for name, pod in pods.items() if not pod or pod.deleting or not pod.ready]
    if not unready:
        return SETTLED
    return SOON if any(is_coming(s, name) for name in unready) else WATCHFUL


def _notes(s: Situation) -> str:
    """What a person should know although the voters are healthy."""
    notes = []
    if s.membership and s.membership.unmanaged:
        names = "; ".join(map(display, s.membership.unmanaged))
        notes.append(
            f"Unmanaged members: {names}. They are left alone, and the size is not changed while they exist. Remove "
            "them with etcdctl member remove if they should not exist."
        )
    if s.target:
        notes.append(f"The upgrade to {s.target} waits until every member is healthy.")
    if s.observed.certificates.problem:
        notes.append(s.observed.certificates.problem)
    return " ".join(notes)


def _advice(s: Situation, pods: list[str]) -> str:
    """What ends the wait for members whose PVCs were deleted while their pods use them."""
    stuck = [name for name in pods if (claim := s.observed.claim(name)) and claim.deleting and s.observed.pod(name)]
    if not stuck:
        return ""
    return f"The PVC of {', '.join(stuck)} is being deleted. Delete the pod too, and the member is replaced."


def _is_lost(s: Situation, name: str) -> bool:
    return bool(loss(s.observed.pod(name), s.observed.claim(name), others_healthy=False))


def problems(s: Situation, pods: list[str]) -> str:
    """What is known of members that are not healthy, as a sentence that follows another one."""
    lost = {slot.name: slot.lost for slot in s.membership.slots if slot.lost} if s.membership else {}
    told = []
    for name in pods:
        pod = s.observed.pod(name)
        if why := lost.get(name) or loss(pod, s.observed.claim(name), others_healthy=False):
            told.append(f"{name}: {why}")
        elif pod is None:
            told.append(f"{name} has no pod")
        elif problem := pod.problem or s.error(name):
            told.append(f"{name}: {problem}")
    return f" {'; '.join(told)}." if told else ""
