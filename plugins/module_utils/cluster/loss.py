"""Evidence that a member is permanently lost. What may come back by itself is not lost. Pure."""

from __future__ import annotations

import re

from .observation import Claim, NodeState, Pod

DATA_GONE, _REMOVED, _DAMAGED = "its data is gone", "it was removed from the cluster", "its data is damaged"
CLAIM_DELETED = "its PVC is being deleted"
# etcd's own reason is the field `error` of a line of its log, which is JSON. The kubelet keeps 2048 bytes, so the first
# line may begin in the middle of it.
_ERROR = r'(?:\A|"error":")(?:[^"\\]|\\.)*'
# What a member with its data never logs.
_REFUSALS = (
    # A sealed configuration (member_config.py): it has no data, and no other member in its initial-cluster.
    (rf"{_ERROR}cannot fetch cluster info from peer urls", DATA_GONE),
    (rf"{_ERROR}(member count is unequal|has already been bootstrapped)", DATA_GONE),
    (rf"{_ERROR}the member has been permanently removed from the cluster", _REMOVED),
)
# The volume can't be used, whatever is on it: this may end, and another volume may have the same problem.
_UNUSABLE = (
    rf"{_ERROR}(permission denied|operation not permitted|input/output error|no space left on device"
    r"|read-only file system)"
)
# etcd read its data and found it damaged. Seen twice: the first time may be an error of the disk that passes.
_DAMAGE = (
    r'"level":"(fatal|panic)"[^\n]*"error":"'
    r"((wal|walpb|snap|snappb|proto): |invalid database|checksum error|version mismatch|file size too small)"
    r'|"level":"panic"[^\n]*"msg":"[^"]*Was the raft log corrupted, truncated, or lost'
)
# Other damage makes etcd panic, and only the end of the stack may be left of that.
_PANIC = r"\.go:\d+ \+0x[0-9a-f]+$"
# A panic of its logger: etcd ended because of an error that is cut off, and that may be one of a volume.
_ENDED_ITSELF = r"zap(core)?\.\(\*(Logger|SugaredLogger|CheckedEntry)\)\."
# So many crashes in a row are no accident, if others are healthy with the same settings.
_PANICS, _CRASHES = 2, 6


def is_cut_off(log_tail: str) -> bool:
    """Whether etcd ended itself with a panic, of which the kubelet kept the stack and not the reason."""
    return bool(re.search(_ENDED_ITSELF, log_tail)) and not reason_in(log_tail)


def reason_in(log: str) -> str:
    """The last line in which etcd says that it panics, and why; "" without one."""
    return next((line for line in reversed(log.splitlines()) if line.startswith('{"level":"panic"')), "")


def loss(pod: Pod | None, claim: Claim | None, *, others_healthy: bool) -> str:
    """Why a member that is not healthy will never come back as it was; "" while it may."""
    if why := loss_of_claim(pod, claim):
        return why
    if pod is None:
        return ""  # the StatefulSet recreates it
    if claim is not None and claim.stranded and (pod.deleting or not pod.scheduled):
        return "the node of its volume is gone"
    if pod.deleting:
        return _loss_of_node(pod, claim)
    return _loss_of_data(pod, others_healthy=others_healthy) if pod.crashed and not pod.out_of_memory else ""


def loss_of_claim(pod: Pod | None, claim: Claim | None) -> str:
    """A PVC that is being deleted goes with the pod that uses it; that can't be stopped any more.

    So there is no need to wait until the member comes back without its data.
    """
    held = pod is not None and pod.scheduled and not pod.deleting
    return CLAIM_DELETED if claim is not None and claim.deleting and not held else ""


def _loss_of_node(pod: Pod, claim: Claim | None) -> str:
    """A pod that is being deleted does not come back unless its node confirms that it has stopped.

    Kubernetes removes a pod whose node is gone, and its volume may be used elsewhere.
    """
    if pod.node is NodeState.UNREACHABLE or (pod.node is NodeState.GONE and claim is None):
        return f"its node is {pod.node}"
    if pod.overdue and pod.node is NodeState.UNKNOWN:
        return "its pod should have stopped long ago, and its node does not confirm it"
    return ""


def _loss_of_data(pod: Pod, *, others_healthy: bool) -> str:
    for words, meaning in _REFUSALS:
        if re.search(words, pod.log_tail):
            return meaning
    crashes = pod.restarts + 1
    if crashes < _PANICS or re.search(_UNUSABLE, pod.log_tail):
        return ""
    if re.search(_DAMAGE, pod.log_tail):
        return _DAMAGED
    panicked = re.search(_PANIC, pod.log_tail, re.MULTILINE) and not re.search(_ENDED_ITSELF, pod.log_tail)
    if others_healthy and crashes >= (_PANICS if panicked else _CRASHES):
        return f"etcd crashed {crashes} times while other members are healthy with the same settings"
    return ""
