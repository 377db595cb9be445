"""The way of any etcd cluster to another version: what is in the way, and whose turn it is. Pure.

For those who run etcd without Kubernetes; the operator plans for itself (upgrade.py, roll.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from .membership import display_name
from .rollout import Voter, gate, order
from .versions import downgrade_to, drops_log_of, parse, refusal
from .view import Survey


@dataclass(frozen=True)
class Outlook:
    refused: str  # why the version can't be reached; "" when it can
    done: bool  # every voter runs it, and the cluster has agreed on it
    waits: str  # what is in the way of the next restart; "" when nothing is
    order: tuple[str, ...]  # who has yet to restart, in this order
    downgrade: str  # the minor version that etcd must get ready for first; "" for none
    old_log: str  # the minor version whose entries must be out of the logs first; "" for none
    cluster_version: str  # what the members agree on


def voters(found: Survey, target: str = "") -> list[Voter]:
    """The voters; with a target, those that run it already are renewed."""
    listed = [seen for seen in found.members if not seen.member.is_learner]
    return [
        Voter(
            id=seen.member.id,
            name=display_name(seen.member),
            healthy=bool(seen.healthy),
            applied=seen.status.raft_applied_index if seen.status else 0,
            leads=seen.member.id == found.leader_id,
            renewed=bool(target and seen.status and seen.status.version == target),
            place=place,
        )
        for place, seen in enumerate(listed)
    ]


def outlook(found: Survey, target: str, cluster_version: str, *, allow_downgrade: bool) -> Outlook:
    known = [seen for seen in found.members if not seen.member.is_learner]
    running = [seen.status.version for seen in known if seen.status]
    refused = (
        refusal(
            running,
            target,
            cluster_version=cluster_version,
            silent=any(seen.status is None for seen in known),
            allow_downgrade=allow_downgrade,
        )
        .replace("spec.upgrade.allowDowngrade", "allow_downgrade")
        .replace("spec.version", "version")
    )
    asked = voters(found, target)
    left = tuple(voter.name for voter in order(asked))
    agreed = not cluster_version or parse(cluster_version).minor == parse(target).minor
    waits = _in_the_way(found, asked, left[0] if left else "")
    if not waits and not left and not agreed:
        waits = f"the members run {target} and have yet to agree on it; that takes etcd a few seconds"
    moved = any(parse(version).minor == parse(target).minor for version in running)
    return Outlook(
        refused=refused,
        done=not left and agreed,
        waits=waits,
        order=left,
        downgrade=downgrade_to(running, target, cluster_version),
        old_log="" if moved else drops_log_of(running, target),
        cluster_version=cluster_version,
    )


def _in_the_way(found: Survey, asked: list[Voter], first: str) -> str:
    if learners := [display_name(seen.member) for seen in found.members if seen.member.is_learner]:
        return f"{', '.join(learners)} is a learner: promote or remove it first"
    if found.alarms:
        return "; ".join(f"alarm {alarm.alarm} of {alarm.member_id:x}" for alarm in found.alarms)
    try:
        if first:
            gate(asked, first)
    except ValueError as error:
        return str(error)
    return ""
