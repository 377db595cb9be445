"""What a plan is: the state that a cluster is in, the one step to take, and what a person is told about it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import StrEnum

from ..kube.manifest import Manifest
from .observation import Upgrade

# Seconds until the next look. Changes of readiness come as events (playbooks/etcdcluster_nudge.yml), so a settled
# cluster is looked at only for what makes none.
SOON, WATCHFUL, PATIENT, SETTLED = 1, 5, 15, 300


class Phase(StrEnum):
    """The states of a cluster, as `kubectl get etcd` shows them."""

    PENDING = "Pending"
    BOOTSTRAPPING = "Bootstrapping"
    RUNNING = "Running"
    SCALING = "Scaling"
    REPAIRING = "Repairing"
    UPGRADING = "Upgrading"
    RESTARTING = "Restarting"
    EXPANDING = "Expanding"
    DEGRADED = "Degraded"
    STARTING = "Starting"
    RESTORING = "Restoring"
    HIBERNATED = "Hibernated"
    PAUSED = "Paused"
    QUORUM_LOST = "QuorumLost"
    UNSUPPORTED = "Unsupported"
    DELETING = "Deleting"


class Step(StrEnum):
    """What a reconcile does; each has a file in roles/etcdcluster/tasks/steps/."""

    IDLE = "idle"
    FORM = "form"  # make everything for the first start
    SEAL = "seal"  # close the configuration of members that have started
    UPDATE = "update"  # bring objects to what they should be
    RENEW = "renew"  # certificates
    HIBERNATE = "hibernate"  # no pods, data kept
    WAKE = "wake"  # the same pods again
    JOIN = "join"  # a member comes, as a learner; one that was lost goes before
    PROMOTE = "promote"  # the learner votes from now on
    LEAVE = "leave"  # a member goes
    SNAPSHOT = "snapshot"  # an EtcdBackup before an upgrade; one that is of no use any more goes
    DOWNGRADE = "downgrade"  # etcd gets ready for an older version, or is told that it was not meant
    ROLL = "roll"  # one member restarts with what the spec asks for; if it leads, another one does before
    EXPAND = "expand"  # claims grow, and what makes them


@dataclass(frozen=True)
class Plan:
    phase: Phase
    reason: str  # one word, for conditions and events
    message: str  # for a person
    step: Step = Step.IDLE
    remove: str = ""  # the ID of the member that goes, in hexadecimal
    add: str = ""  # the pod that joins as a learner
    promote: str = ""  # the ID of the learner that becomes a voter
    apply: tuple[Manifest, ...] = ()
    delete_claims: tuple[str, ...] = ()
    delete_pods: tuple[str, ...] = ()
    delete_backups: tuple[str, ...] = ()
    delete_sets: tuple[str, ...] = ()  # StatefulSets, without their pods
    restart: str = ""  # the pod that restarts, and is this one
    restart_uid: str = ""
    lead: str = ""  # the ID of the voter that leads before that, in hexadecimal
    downgrade: str = ""  # the version that etcd gets ready for; "" to call it off
    upgrade: Upgrade | None = None  # what the status is to remember of it
    certificates: bool = False  # issue what is missing or due
    cluster_id: str | None = None
    requeue: int = SOON


# From, to, and when: what the diagram shows.
TRANSITIONS = (
    (Phase.PENDING, Phase.BOOTSTRAPPING, "objects are made"),
    (Phase.BOOTSTRAPPING, Phase.RUNNING, "every member serves"),
    (Phase.BOOTSTRAPPING, Phase.DEGRADED, "a quorum serves, some members don't"),
    (Phase.RUNNING, Phase.SCALING, "another size"),
    (Phase.SCALING, Phase.RUNNING, "as many voters as wanted"),
    (Phase.RUNNING, Phase.DEGRADED, "a member does not serve"),
    (Phase.DEGRADED, Phase.RUNNING, "every member serves"),
    (Phase.DEGRADED, Phase.REPAIRING, "a member is lost for good"),
    (Phase.REPAIRING, Phase.RUNNING, "its replacement votes"),
    (Phase.RUNNING, Phase.UPGRADING, "another version"),
    (Phase.UPGRADING, Phase.RUNNING, "every member runs it"),
    (Phase.RUNNING, Phase.RESTARTING, "other settings"),
    (Phase.RESTARTING, Phase.RUNNING, "every member has them"),
    (Phase.RUNNING, Phase.EXPANDING, "more room"),
    (Phase.EXPANDING, Phase.RUNNING, "every claim has it"),
    (Phase.DEGRADED, Phase.QUORUM_LOST, "fewer than a quorum serve"),
    (Phase.DEGRADED, Phase.STARTING, "fewer than a quorum serve, pods are starting"),
    (Phase.STARTING, Phase.RUNNING, "every member serves"),
    (Phase.STARTING, Phase.QUORUM_LOST, "pods do not come up"),
    (Phase.QUORUM_LOST, Phase.RUNNING, "the members are back"),
    (Phase.RUNNING, Phase.HIBERNATED, "size 0"),
    (Phase.HIBERNATED, Phase.STARTING, "size above 0"),
    (Phase.RUNNING, Phase.RESTORING, "an EtcdRestore holds it"),
    (Phase.RESTORING, Phase.BOOTSTRAPPING, "its members have the data of a snapshot"),
    (Phase.RESTORING, Phase.STARTING, "the restore failed, and what was there is back"),
    (Phase.RUNNING, Phase.PAUSED, "paused"),
    (Phase.PAUSED, Phase.RUNNING, "no longer paused"),
    (Phase.PENDING, Phase.UNSUPPORTED, "what is asked for can't be done"),
    (Phase.UNSUPPORTED, Phase.PENDING, "it was put right"),
    (Phase.RUNNING, Phase.DELETING, "deleted"),
)


def spread(seconds: int, uid: str) -> int:
    """A tenth more or less, always the same for a cluster. Settled clusters that were made at once would else be looked
    at at once, time and again, and a change of another would wait behind them."""
    tenth = seconds // 10
    return seconds - tenth + zlib.crc32(uid.encode()) % (2 * tenth + 1)
