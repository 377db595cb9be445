"""Another version: is the path allowed, is every member healthy, is there a snapshot, is etcd prepared. Pure.

Until all of that holds, pods keep the version that they have, also those that restart: what is rendered is the version
that was released before. What happens then is a rollout like any other (rollout.py).
"""

from __future__ import annotations

from dataclasses import replace

from ..etcd.upgrade_path import downgrade_to, drops_log_of, news, refusal
from ..etcd.versions import parse
from ..plan import WATCHFUL, Plan
from . import desired
from .actions import CancelDowngrade, EnableDowngrade, UpdateObjects
from .membership import Membership, display
from .memory import Upgrade, upgrade_record
from .plan import Phase, Reason
from .situation import Situation
from .upgrade_snapshot import begin, discard, snapshot


def in_progress(s: Situation) -> Upgrade | None:
    upgrade = s.observed.memory.upgrade
    return upgrade if upgrade and upgrade.in_progress else None


def corrected(s: Situation) -> Situation:
    """When no quorum reports what members run: the target of an upgrade in progress may be corrected or taken back.

    Pods may be unable to start because of it, all of them if they were stopped in the middle.
    """
    upgrade = in_progress(s)
    if not s.target or upgrade is None or upgrade.source == s.version:
        return s
    goal, source = parse(s.target), parse(upgrade.source)
    return s if goal != source and goal.minor != parse(s.version).minor else s.released()


def prepare(s: Situation, members: Membership) -> Plan | None:
    """What must be done before the first member moves; finally, pods may have the version.

    None when this is not the moment.
    """
    silent = any(not slot.version for slot in members.voters) or bool(members.unmanaged_voters)
    if why := refusal(
        members.versions,
        s.target,
        cluster_version=members.cluster_version,
        silent=silent,
        allow_downgrade=s.cluster.upgrade.allow_downgrade,
    ):
        return _refused(f"Version {s.target} refused: {why}")
    upgrade = in_progress(s)
    if upgrade and upgrade.source != s.version:  # members are moving: only the target is corrected, or taken back
        if not _is_reached(s, members):
            return _redirect(s, members, upgrade)
        upgrade = None  # they have arrived, and the next upgrade begins
    if members.learners or (members.undependable and not members.unmanaged_voters):
        return None
    if s.in_memory and members.votes < 2:
        return _refused(
            f"Version {s.target} refused: the only member has its data in memory. Set spec.size to 3 first."
        )
    upgrade = upgrade.towards(s.target) if upgrade else begin(s)
    return (
        _blocked(s, members)
        or snapshot(s, upgrade, started=bool(members.downgrade) or upgrade.log_ready)
        or _etcd_ready(s, members, upgrade)
        or _release(s, members, upgrade, _announcement(s, upgrade))
    )


def _refused(message: str) -> Plan:
    return Plan(Phase.UNSUPPORTED, Reason.VERSION_REFUSED, message, requeue=WATCHFUL)


def _redirect(s: Situation, members: Membership, upgrade: Upgrade) -> Plan:
    if parse(s.target).minor not in (parse(upgrade.source).minor, parse(s.version).minor):
        message = (
            f"Upgrade to {s.target} blocked: the upgrade from {upgrade.source} to {s.version} is in progress. It "
            f"starts when every member runs {s.version}, or {upgrade.source} again."
        )
        return Plan(Phase.UPGRADING, Reason.UPGRADE_BLOCKED, message, requeue=WATCHFUL)
    upgrade = upgrade.towards(s.target)
    ready = _etcd_ready(s, members, upgrade)
    return ready or _release(s, members, upgrade, f"The target of the upgrade is now {s.target}.")


def _blocked(s: Situation, members: Membership) -> Plan | None:
    causes = {
        f"etcd on {slot.name} reports {error}"
        for slot in members.voters
        if slot.view and slot.view.status
        for error in slot.view.status.errors
    }
    causes |= {f"{display(member)} is an unmanaged member" for member in members.unmanaged}
    if not causes:
        return None
    message = (
        f"Upgrade to {s.target} blocked: {'; '.join(sorted(causes))}. It starts when alarms are cleared "
        "(docs/alarms.md) and unmanaged members are removed (etcdctl member remove)."
    )
    return Plan(Phase.UPGRADING, Reason.UPGRADE_BLOCKED, message, requeue=WATCHFUL)


# -- what etcd itself must do


def _etcd_ready(s: Situation, members: Membership, upgrade: Upgrade) -> Plan | None:
    """What etcd must do before members can move; None when it is ready."""
    goal, reached = parse(s.target), members.cluster_version
    down = downgrade_to(members.versions, s.target, reached)
    if down:
        return _downgrade(members, upgrade, down)
    if members.downgrade and parse(members.downgrade).minor == goal.minor:
        return _lowered(members, upgrade, goal.series)
    old = drops_log_of(members.versions, s.target)
    if old and not upgrade.log_ready:
        return _drop_log(s, members, upgrade, old)
    if members.downgrade:
        return _cancel(members, upgrade)
    if old and reached and parse(reached).minor < goal.minor - 1:
        message = (
            f"Waiting for etcd's cluster version to become {goal.major}.{goal.minor - 1} again; it is "
            f"{parse(reached).series}."
        )
        return _upgrading(Reason.PREPARING_LOG, message, upgrade)
    return None


def _upgrading(reason: Reason, message: str, upgrade: Upgrade) -> Plan:
    return Plan(Phase.UPGRADING, reason, message, record=upgrade_record(upgrade))


def _cancel(members: Membership, upgrade: Upgrade) -> Plan:
    message = f"Cancelling the pending downgrade to {members.downgrade}."
    return replace(_upgrading(Reason.CANCELLING_DOWNGRADE, message, upgrade), action=CancelDowngrade())


def _downgrade(members: Membership, upgrade: Upgrade, down: str) -> Plan:
    if members.downgrade:
        waiting = f"Waiting for etcd's cluster version to become {down}."
        return _lowered(members, upgrade, down) or _upgrading(Reason.ENABLING_DOWNGRADE, waiting, upgrade)
    message = f"Enabling the downgrade to {down}: etcd removes data that only a later version can read."
    return replace(_upgrading(Reason.ENABLING_DOWNGRADE, message, upgrade), action=EnableDowngrade(down))


def lower_again(s: Situation, members: Membership) -> Plan | None:
    """A downgrade whose pods have been released, when etcd's cluster version is above it: no such pod could start.

    It rises when the downgrade was cancelled for a new member, and that member did not join.
    """
    upgrade = in_progress(s)
    if upgrade is None or s.target or not members.cluster_version:
        return None
    goal = parse(s.version)
    if parse(members.cluster_version).minor > goal.minor:
        return _downgrade(members, upgrade, goal.series)
    return _lowered(members, upgrade, goal.series) if members.downgrade else None


def _lowered(members: Membership, upgrade: Upgrade, down: str) -> Plan | None:
    """Every member's storage version must be one that the older version can read."""
    high = [
        slot.name
        for slot in members.voters
        if slot.view and slot.view.status and (stored := slot.view.status.storage_version)
        if parse(stored).minor > parse(down).minor
    ]
    if not high:
        return None
    message = f"Waiting for the storage version of {', '.join(high)} to become {down}."
    return _upgrading(Reason.ENABLING_DOWNGRADE, message, upgrade)


def _drop_log(s: Situation, members: Membership, upgrade: Upgrade, old: str) -> Plan:
    """Each member takes a snapshot of its own, and drops the log before it, when the cluster version goes down."""
    message = f"Members drop log entries of {old} first: {parse(s.target).series} can't read them."
    if not members.downgrade:
        return replace(_upgrading(Reason.PREPARING_LOG, message, upgrade), action=EnableDowngrade(old))
    told = [slot.view.cluster_version for slot in members.voters if slot.view and slot.answers]
    if all(version and parse(version).series == old for version in told) and not members.undependable:
        done = f"Members have dropped the log entries of {old}. Cancelling the pending downgrade to {old}."
        ready = replace(upgrade, log_ready=True)
        return replace(_upgrading(Reason.PREPARING_LOG, done, ready), action=CancelDowngrade())
    return _upgrading(Reason.PREPARING_LOG, message, upgrade)


# -- the beginning and the end


def _release(s: Situation, members: Membership, upgrade: Upgrade, message: str) -> Plan:
    """From here on pods that restart run the version."""
    going = s.released()
    action = UpdateObjects(desired.changed(desired.for_members(going, members), going))
    return replace(_upgrading(Reason.UPGRADE_STARTED, message, upgrade), action=action)


def _announcement(s: Situation, upgrade: Upgrade) -> str:
    told = f"Upgrading every member from {upgrade.source} to {s.target}, one at a time."
    if not s.cluster.upgrade.snapshot:
        return f"{told} No snapshot was taken: spec.upgrade.snapshot.mode is Skip."
    return f"{told} The snapshot before it is EtcdBackup {upgrade.snapshot}."


def _is_reached(s: Situation, members: Membership) -> bool:
    """Whether every member runs the version that was released, and etcd has agreed on it."""
    agreed = members.cluster_version
    here = all(slot.version == s.version for slot in members.voters) and not members.unmanaged_voters
    return here and bool(agreed) and parse(agreed).minor == parse(s.version).minor


def finish(s: Situation, members: Membership, settled: Plan) -> Plan:
    """All members are healthy and none is to restart: whether the upgrade in progress is complete."""
    upgrade = in_progress(s)
    if upgrade is None or s.target:
        return settled
    if unused := discard(s, upgrade):
        return unused
    upgrade = upgrade.towards(s.version)
    goal, reached = parse(s.version), members.cluster_version
    other = [f"{slot.name} {slot.version}" for slot in members.voters if slot.version != s.version]
    if other:
        message = f"Waiting for every member to report {s.version}; so far {', '.join(other)}."
        return _upgrading(Reason.WAITING_FOR_MEMBER, message, upgrade)
    if members.downgrade and parse(members.downgrade).minor < goal.minor:
        return _cancel(members, upgrade)
    if reached and parse(reached).minor != goal.minor:
        message = f"Every member runs {s.version}; waiting for etcd's cluster version, which is {reached}."
        return _upgrading(Reason.WAITING_FOR_CLUSTER_VERSION, message, upgrade)
    return replace(settled, record=upgrade_record(replace(upgrade, completed=s.observed.now)))


def other_version(s: Situation, members: Membership) -> Plan | None:
    """When the image by digest does not contain what spec.version says; the members stay as they are."""
    other = sorted({slot.version for slot in members.voters if slot.version and slot.version != s.version})
    if not s.cluster.spec_image or s.target or s.rejected or not other:
        return None
    message = (
        f"spec.image contains etcd {', '.join(other)}, but spec.version says {s.version}. Set spec.version to what it "
        "contains, or spec.image to another image."
    )
    return Plan(Phase.UNSUPPORTED, Reason.OTHER_VERSION, message, requeue=WATCHFUL)


def outcome(upgrade: Upgrade) -> tuple[str, str]:
    """A word and a sentence for an upgrade that is complete."""
    source, to = parse(upgrade.source), parse(upgrade.to)
    if source == to:
        tried = f" The upgrade to {upgrade.tried} was rolled back." if upgrade.tried else ""
        return "RolledBack", f"Every member runs {upgrade.to} again.{tried}"
    if to < source:
        return "Downgraded", f"Every member runs {upgrade.to}; it was {upgrade.source}."
    brings = f" {to.series} brings {news(upgrade.to)}." if to.minor > source.minor else ""
    return "Upgraded", f"Every member runs {upgrade.to}; it was {upgrade.source}.{brings}"
