"""The path of any etcd cluster to another version: what blocks it, and which member restarts next. Pure.

For clusters outside Kubernetes; the operator plans with cluster/upgrade.py and cluster/rollout.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import EtcdError
from .membership import display_name
from .restart_order import Voter, restart_order, transferee, voters
from .upgrade_path import downgrade_to, drops_log_of, refusal
from .versions import parse
from .view import ClusterView


@dataclass(frozen=True)
class Outlook:
    refused: str  # why the version can't be reached; "" when it can
    done: bool  # every voter runs it, and the cluster version followed
    waits: str  # what blocks the next restart; "" when nothing does
    order: tuple[str, ...]  # the members that have yet to restart, in this order
    downgrade: str  # the minor version that etcd must prepare for first; "" for none
    old_log: str  # the minor version whose entries must leave the logs first; "" for none
    cluster_version: str  # what the members agreed on


def outlook(view: ClusterView, target: str, *, allow_downgrade: bool) -> Outlook:
    running = [one.version for one in view.voters if one.version]
    cluster_version = view.cluster_version
    refused = (
        refusal(
            running,
            target,
            cluster_version=cluster_version,
            silent=any(one.status is None for one in view.voters),
            allow_downgrade=allow_downgrade,
        )
        .replace("spec.upgrade.allowDowngrade", "allow_downgrade")
        .replace("spec.version", "version")
    )
    asked = voters(view, target)
    left = tuple(voter.name for voter in restart_order(asked))
    agreed = not cluster_version or parse(cluster_version).minor == parse(target).minor
    waits = _blocked(view, asked, left[0] if left else "")
    if not waits and not left and not agreed:
        waits = f"every member runs {target}; etcd's cluster version is {cluster_version} and follows in a few seconds"
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


def _blocked(view: ClusterView, asked: list[Voter], first: str) -> str:
    if learners := [display_name(one.member) for one in view.learners]:
        return f"{', '.join(learners)} is a learner: promote or remove it first"
    if view.alarms:
        return "; ".join(f"alarm {alarm.alarm} of {alarm.member_id:x}" for alarm in view.alarms)
    try:
        if first:
            transferee(asked, first)
    except EtcdError as error:
        return str(error)
    return ""
