"""Is what a member had gone for good? The evidence, as pure judgement. What may come back by itself is not lost."""

from __future__ import annotations

import re

from .observation import Claim, Node, Pod

# What etcd says with its last breath, and what that means. Of a member with its data none of these can be heard.
GONE, _REMOVED, _DAMAGED = "its data is gone", "it was removed from the cluster", "its data is damaged"
GOING = "its disk is being deleted"
_LAST_WORDS = (
    # A sealed configuration (config.py): it has no data, and nobody to ask in its initial-cluster.
    (r"cannot fetch cluster info from peer urls", GONE),
    (r"member count is unequal|has already been bootstrapped", GONE),
    (r"the member has been permanently removed from the cluster", _REMOVED),
    (r'crc mismatch|"error":"(wal|walpb|snap|proto): |failed to (read|repair|open) WAL', _DAMAGED),
)
# What is damaged in other ways makes etcd panic, and only the end of the stack may be left of that.
_PANIC = r"\.go:\d+ \+0x[0-9a-f]+$"
_PANICS, _CRASHES = 2, 6  # as often as that it was no accident, if the others are well with the same settings


def loss(pod: Pod | None, claim: Claim | None, *, others_well: bool) -> str:
    """Why a member that does not serve will never come back as it was, in words; "" while it may."""
    if why := loss_of_claim(pod, claim):
        return why
    if pod is None:
        return ""  # the StatefulSet brings it back
    if not pod.scheduled and claim is not None and claim.node is Node.GONE:
        return "the node of its disk is gone"
    if pod.deleting:
        return _loss_of_node(pod)
    return _loss_of_data(pod, others_well=others_well) if pod.crashed and not pod.out_of_memory else ""


def loss_of_claim(pod: Pod | None, claim: Claim | None) -> str:
    """A claim that is being deleted goes with the pod that uses it, and nobody can stop that any more.

    So it needs not be waited for until the member has come back without its data.
    """
    held = pod is not None and pod.scheduled and not pod.deleting
    return GOING if claim is not None and claim.deleting and not held else ""


def _loss_of_node(pod: Pod) -> str:
    """A pod that is going does not come back unless its node says that it has stopped."""
    if pod.node in (Node.UNREACHABLE, Node.GONE):
        return f"its node is {pod.node}"
    if pod.overdue and pod.node is Node.UNKNOWN:
        return "its pod should have stopped long ago, and its node does not say that it has"
    return ""


def _loss_of_data(pod: Pod, *, others_well: bool) -> str:
    for words, meaning in _LAST_WORDS:
        if re.search(words, pod.last_words, re.IGNORECASE):
            return meaning
    crashes = pod.restarts + 1
    enough = _PANICS if re.search(_PANIC, pod.last_words, re.MULTILINE) else _CRASHES
    if others_well and crashes >= enough:
        return f"etcd crashed {crashes} times while the others run well with the same settings"
    return ""
