"""Evidence that a member is permanently lost. What may come back by itself is not lost. Pure."""

from __future__ import annotations

import re

from .observation import Claim, NodeState, Pod

# What etcd logs last, and what that means. A member with its data logs none of these.
DATA_GONE, _REMOVED, _DAMAGED = "its data is gone", "it was removed from the cluster", "its data is damaged"
CLAIM_DELETED = "its PVC is being deleted"
_LOG_TAILS = (
    # A sealed configuration (config.py): it has no data, and no other member in its initial-cluster.
    (r"cannot fetch cluster info from peer urls", DATA_GONE),
    (r"member count is unequal|has already been bootstrapped", DATA_GONE),
    (r"the member has been permanently removed from the cluster", _REMOVED),
    (r'crc mismatch|"error":"(wal|walpb|snap|proto): |failed to (read|repair|open) WAL', _DAMAGED),
)
# Other damage makes etcd panic, and only the end of the stack may be left of that.
_PANIC = r"\.go:\d+ \+0x[0-9a-f]+$"
# So many crashes in a row are no accident, if others are healthy with the same settings.
_PANICS, _CRASHES = 2, 6


def loss(pod: Pod | None, claim: Claim | None, *, others_healthy: bool) -> str:
    """Why a member that is not healthy will never come back as it was; "" while it may."""
    if why := loss_of_claim(pod, claim):
        return why
    if pod is None:
        return ""  # the StatefulSet recreates it
    if not pod.scheduled and claim is not None and claim.node is NodeState.GONE:
        return "the node of its volume is gone"
    if pod.deleting:
        return _loss_of_node(pod)
    return _loss_of_data(pod, others_healthy=others_healthy) if pod.crashed and not pod.out_of_memory else ""


def loss_of_claim(pod: Pod | None, claim: Claim | None) -> str:
    """A PVC that is being deleted goes with the pod that uses it; that can't be stopped any more.

    So there is no need to wait until the member comes back without its data.
    """
    held = pod is not None and pod.scheduled and not pod.deleting
    return CLAIM_DELETED if claim is not None and claim.deleting and not held else ""


def _loss_of_node(pod: Pod) -> str:
    """A pod that is being deleted does not come back unless its node confirms that it has stopped."""
    if pod.node in (NodeState.UNREACHABLE, NodeState.GONE):
        return f"its node is {pod.node}"
    if pod.overdue and pod.node is NodeState.UNKNOWN:
        return "its pod should have stopped long ago, and its node does not confirm it"
    return ""


def _loss_of_data(pod: Pod, *, others_healthy: bool) -> str:
    for words, meaning in _LOG_TAILS:
        if re.search(words, pod.log_tail, re.IGNORECASE):
            return meaning
    crashes = pod.restarts + 1
    enough = _PANICS if re.search(_PANIC, pod.log_tail, re.MULTILINE) else _CRASHES
    if others_healthy and crashes >= enough:
        return f"etcd crashed {crashes} times while other members are healthy with the same settings"
    return ""
