"""The phases of an EtcdCluster and the reasons for them. docs/conditions.md is generated from these enums."""

from __future__ import annotations

from ..plan import BLOCKED, WARNING
from ..plan import Phase as BasePhase
from ..plan import Reason as BaseReason


class Phase(BasePhase):
    PENDING = "Pending", "The operator has not reconciled it yet."
    BOOTSTRAPPING = "Bootstrapping", "The members start for the first time, all at once."
    RUNNING = "Running", "Every member is healthy."
    SCALING = "Scaling", "Members are added or removed, one at a time, until there are as many as spec.size."
    REPAIRING = "Repairing", "A member that is permanently lost is replaced."
    UPGRADING = "Upgrading", "Members move to another version, one at a time, after a snapshot."
    RESTARTING = "Restarting", "Members restart with new settings, one at a time."
    EXPANDING = "Expanding", "The members' PVCs grow."
    DEGRADED = (
        "Degraded",
        "A quorum is healthy, but some members are not, or etcd reports an alarm; the message says which and why.",
    )
    STARTING = "Starting", "Less than a quorum is healthy, and pods are starting."
    RESTORING = "Restoring", "An EtcdRestore holds the cluster: no member runs until each has the data of a snapshot."
    HIBERNATED = "Hibernated", "Size 0: no pods, the data is kept."
    PAUSED = "Paused", "The operator changes nothing until spec.paused is false."
    QUORUM_LOST = (
        "QuorumLost",
        "Less than a quorum is healthy and no pod is starting: a person must act. Nothing is deleted.",
    )
    AUTH_REQUIRED = (
        "AuthRequired",
        "etcd's auth was enabled and refuses the operator, which changes no member: a person must act.",
    )
    UNSUPPORTED = "Unsupported", "The spec asks for something that can't be done; the message says why and what to do."
    DELETING = "Deleting", "The cluster is being deleted."

    @property
    def moving(self) -> bool:
        """Whether the operator is working on the cluster."""
        return self in (
            Phase.BOOTSTRAPPING,
            Phase.STARTING,
            Phase.SCALING,
            Phase.REPAIRING,
            Phase.UPGRADING,
            Phase.RESTARTING,
            Phase.EXPANDING,
        )

    @property
    def warning(self) -> bool:
        return self in (Phase.DEGRADED, Phase.QUORUM_LOST, Phase.AUTH_REQUIRED, Phase.UNSUPPORTED)


class Reason(BaseReason):
    # -- the first start
    BOOTSTRAPPING = (
        "Bootstrapping",
        "The members start for the first time.",
        "Wait; the message names what a member waits for.",
    )
    FORMED = "Formed", "The first quorum was seen.", ""
    NEVER_STARTED = "NeverStarted", "spec.size is 0 and the cluster never ran.", "Set spec.size."
    FOREIGN_DATA = (
        "ForeignData",
        "A PVC with the name of a member's PVC belongs to another or an earlier cluster.",
        "Delete that PVC if its data is not needed, or use another cluster name.",
    )
    FOREIGN_OBJECT = (
        "ForeignObject",
        "An object has a name that the operator needs, and was not made for this EtcdCluster. It is not changed.",
        "Delete the object that the message names, or use another name for the EtcdCluster.",
        BLOCKED,
    )
    INVALID_SECRET = (
        "InvalidSecret",
        "A Secret named in spec.tls is missing or has no usable certificate.",
        "Correct the Secret.",
    )
    SHARED_CA = (
        "SharedCA",
        "An earlier version of the operator gave two EtcdClusters the same CA: each accepts certificates of the other.",
        "Move the data to an EtcdCluster with another name (docs/using.md).",
        WARNING,
    )
    STORAGE_CLASS_MISSING = "StorageClassMissing", "spec.storage.className names no StorageClass.", "Create it."
    IMAGE_NOT_ALLOWED = (
        "ImageNotAllowed",
        "The operator's setting ETCDOPS_ALLOWED_REPOSITORIES does not allow the image. Members keep the one they have.",
        "Use an image of an allowed repository, or have the administrator add the one in the message.",
    )
    REJECTED = "Rejected", "The API server rejects the pods that spec.pod asks for.", "Correct spec.pod."
    # -- health
    ALL_HEALTHY = "AllMembersHealthy", "Every voter is healthy.", ""
    CHANGE_PENDING = (
        "ChangePending",
        "Every voter is healthy, but a change waits or a Secret in spec.tls is not usable; the message says which.",
        "See the message.",
    )
    MEMBERS_DOWN = (
        "MembersDown",
        "A minority of the voters is not healthy.",
        "The message names each member and its problem. A member that is permanently lost is replaced.",
    )
    NO_SPACE = (
        "NoSpace",
        "etcd reports alarm NOSPACE: the database has reached its quota, and every write is refused.",
        "Free space or raise spec.options.quotaBackendBytes, then disarm the alarm (docs/alarms.md).",
        WARNING,
    )
    CORRUPT = (
        "Corrupt",
        "etcd reports alarm CORRUPT: the data of the members differs, and reads and writes are refused.",
        "Replace the member whose data differs, then disarm the alarm (docs/alarms.md).",
        WARNING,
    )
    UNMANAGED_MEMBER = (
        "UnmanagedMember",
        "The member list has a member that this EtcdCluster did not add.",
        "Remove it with `etcdctl member remove` if it should not be there.",
    )
    STARTING = "Starting", "Less than a quorum is healthy, and pods are starting.", "Wait."
    NO_LEADER = "NoLeader", "A quorum answers, and the members elect a leader.", "Wait."
    MISSED = (
        "Missed",
        "The pods are ready, but for less than 10 seconds fewer members than a quorum have answered the operator.",
        "Wait.",
    )
    QUORUM_LOST = (
        "QuorumLost",
        "Less than a quorum is healthy and no pod is starting. Reads and writes fail. Nothing is deleted.",
        "Bring the pods or their nodes back, or restore from a backup.",
    )
    AUTH_REQUIRED = (
        "AuthRequired",
        "Someone enabled etcd's auth, and etcd refuses the operator. The members may be healthy; none is changed.",
        "Disable auth: `etcdctl --user root auth disable` (docs/repair.md).",
        WARNING,
    )
    ALL_DATA_LOST = (
        "AllDataLost",
        "The ConfigMap, the StatefulSet and all PVCs are gone.",
        "Restore from a backup.",
    )
    # -- on request
    PAUSED = "Paused", "spec.paused is true.", "Set spec.paused to false."
    CERTIFICATES_DUE = (
        "CertificatesDue",
        "spec.paused is true, and certificates that are due are not renewed. Members fail when they expire.",
        "Set spec.paused to false until they are renewed.",
        WARNING,
    )
    RESTORING = "Restoring", "An EtcdRestore holds the cluster.", "See the EtcdRestore."
    HIBERNATING = "Hibernating", "spec.size is 0, and members are stopping.", ""
    HIBERNATED = "Hibernated", "spec.size is 0. The data is kept.", "Set spec.size to start the cluster again."
    WAKING = "Waking", "A hibernated cluster starts again.", ""
    DELETING = "Deleting", "The EtcdCluster is being deleted.", ""
    FINAL_SNAPSHOT = (
        "FinalSnapshot",
        "The EtcdCluster is being deleted and waits for the snapshot in spec.deletion.snapshot.",
        "See the EtcdBackup; the annotation etcdops.dev/skip-final-snapshot=true deletes the cluster without it.",
    )
    FINAL_SNAPSHOT_FAILED = (
        "FinalSnapshotFailed",
        "The final snapshot failed. Nothing is deleted, and it is tried again.",
        "Correct spec.deletion.snapshot, or set the annotation etcdops.dev/skip-final-snapshot=true.",
        WARNING,
    )
    GONE = "Gone", "The EtcdCluster does not exist any more.", ""
    # -- membership
    ADDING_MEMBER = "AddingMember", "A member joins as a learner.", ""
    WAITING_FOR_LEARNER = (
        "WaitingForLearner",
        "A learner starts and catches up.",
        "Wait; the message has its problem, if any.",
    )
    WAITING_FOR_VOTERS = (
        "WaitingForVoters",
        "A learner can't be promoted while a voter is not healthy.",
        "See the voter's pod.",
    )
    PROMOTING_MEMBER = "PromotingMember", "A learner in sync becomes a voter.", ""
    REMOVING_MEMBER = "RemovingMember", "A member leaves.", ""
    REPLACING_MEMBER = "ReplacingMember", "A member that is permanently lost is replaced.", ""
    JOIN_FAILED = (
        "JoinFailed",
        "A learner did not start and catch up within 10 minutes, and was removed.",
        "The event says why. It is tried again after 10 minutes, or when the spec changes.",
        WARNING,
    )
    CLEANING_UP = "CleaningUp", "PVCs or EtcdBackups that are no longer needed are deleted.", ""
    # -- rollouts
    CHANGING_SETTINGS = "ChangingSettings", "New settings are applied; members restart one at a time.", ""
    UPDATING_OBJECTS = (
        "UpdatingObjects",
        "During a rollout, objects other than pods change, such as the PodDisruptionBudget when spec.size was edited.",
        "",
    )
    RESTARTING_MEMBER = "RestartingMember", "A member restarts with a new version or new settings.", ""
    WAITING_FOR_MEMBER = (
        "WaitingForMember",
        "A rollout waits until every member is healthy.",
        "Wait; the message names the member.",
    )
    ROLLOUT_STOPPED = (
        "RolloutStopped",
        "A member that was restarted did not become healthy, so no other member is restarted.",
        "Correct the spec or set it back; that member is restarted first.",
        WARNING,
    )
    OTHER_VERSION = (
        "OtherVersion",
        "The image that spec.image names contains another etcd version than spec.version.",
        "Set spec.version to the version that the members report, or correct spec.image.",
        WARNING,
    )
    CANNOT_RESTART = (
        "CannotRestart",
        "The only member has its data in memory, so it can't restart.",
        "Set spec.size to 3 first.",
        BLOCKED,
    )
    # -- upgrades
    VERSION_REFUSED = (
        "VersionRefused",
        "etcd can't go from the running version to spec.version.",
        "Set spec.version to what the message names.",
        BLOCKED,
    )
    UPGRADE_BLOCKED = (
        "UpgradeBlocked",
        "An alarm, an unmanaged member or an unfinished upgrade blocks the upgrade.",
        "See the message.",
        BLOCKED,
    )
    TAKING_SNAPSHOT = "TakingSnapshot", "A snapshot is taken before the upgrade.", "See the EtcdBackup."
    SNAPSHOT_FAILED = (
        "SnapshotFailed",
        "The snapshot before the upgrade failed, so no member is restarted. It is tried again every minute.",
        "Name another destination in spec.upgrade.snapshot, or set its mode to Skip.",
        BLOCKED,
    )
    UPGRADE_STARTED = "UpgradeStarted", "The checks passed; members move one at a time.", ""
    ENABLING_DOWNGRADE = "EnablingDowngrade", "etcd prepares its data for an older minor version.", "Wait."
    CANCELLING_DOWNGRADE = (
        "CancellingDowngrade",
        "A pending downgrade is no longer wanted, or keeps a new member from joining, and is cancelled.",
        "",
    )
    PREPARING_LOG = "PreparingLog", "Members drop log entries that the new version can't read.", "Wait."
    WAITING_FOR_CLUSTER_VERSION = (
        "WaitingForClusterVersion",
        "Every member runs the version; etcd's cluster version follows.",
        "Wait.",
    )
    # -- volumes
    EXPANDING_VOLUMES = "ExpandingVolumes", "PVCs grow to spec.storage.size.", ""
    WAITING_FOR_VOLUMES = "WaitingForVolumes", "Kubernetes expands the volumes.", "Wait; see the PVC's events."
    EXPANSION_REFUSED = (
        "ExpansionRefused",
        "The StorageClass does not allow expansion, or Kubernetes refused it. The PVCs stay as they are.",
        "Set allowVolumeExpansion on the StorageClass, or move the data to a new EtcdCluster.",
    )


# Observed during an election: less than a quorum is healthy, and the phase stays for a moment.
ELECTION = (Reason.NO_LEADER, Reason.MISSED)
