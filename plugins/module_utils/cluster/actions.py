"""The actions of an EtcdCluster: a closed set. Each has its task file in roles/etcdcluster/tasks/actions/."""

from __future__ import annotations

from dataclasses import dataclass

from ..kube.manifest import Manifest
from ..plan import Action, Ref

Objects = tuple[Manifest, ...]


@dataclass(frozen=True)
class FormCluster(Action):
    """Create everything for the first start. Nothing can be lost yet: pods of a corrected spec are deleted."""

    objects: Objects
    issue_certificates: bool = False
    stale_pods: tuple[Ref, ...] = ()


@dataclass(frozen=True)
class SealConfiguration(Action):
    """Close the configuration of members that have started: without their data they can't start again."""

    objects: Objects


@dataclass(frozen=True)
class UpdateObjects(Action):
    """Bring objects to their desired state and delete what no member uses."""

    objects: Objects = ()
    delete_claims: tuple[Ref, ...] = ()
    delete_pods: tuple[Ref, ...] = ()  # by force: no member is in them
    stuck_pods: tuple[Ref, ...] = ()  # by force: they never ran, or do not now


@dataclass(frozen=True)
class IssueCertificates(Action):
    """Issue certificates that are missing or due. No restart: etcd reads its certificate at each handshake."""


@dataclass(frozen=True)
class StopMembers(Action):
    """Scale the StatefulSet to 0; the data is kept."""

    objects: Objects


@dataclass(frozen=True)
class StartMembers(Action):
    """Start the same members again, each with its data."""

    objects: Objects
    issue_certificates: bool = False


@dataclass(frozen=True)
class AddLearner(Action):
    """Add a member as a learner: first to the member list, then its configuration, then its pod."""

    pod: str
    objects: Objects
    delete_claims: tuple[Ref, ...] = ()
    delete_pods: tuple[Ref, ...] = ()


@dataclass(frozen=True)
class ReplaceMember(Action):
    """Remove a lost member and add a learner in its slot."""

    member_id: str
    pod: str
    objects: Objects
    delete_claims: tuple[Ref, ...] = ()
    delete_pods: tuple[Ref, ...] = ()


@dataclass(frozen=True)
class PromoteLearner(Action):
    """Make a learner a voter, after its configuration was sealed."""

    member_id: str
    objects: Objects = ()


@dataclass(frozen=True)
class RemoveMember(Action):
    """Remove a member, then its pod, then its PVC."""

    member_id: str
    objects: Objects
    delete_claims: tuple[Ref, ...] = ()


@dataclass(frozen=True)
class RestartMember(Action):
    """Delete a pod so that the StatefulSet recreates it as it should be; leadership moves to `transferee` first."""

    pod: Ref
    transferee: str = ""  # member ID in hexadecimal; "" when the member does not lead
    objects: Objects = ()


@dataclass(frozen=True)
class TakeSnapshot(Action):
    """Create the EtcdBackup that must succeed before an upgrade or a deletion."""

    backup: Manifest

    @property
    def creates(self) -> Objects:
        return (self.backup,)


@dataclass(frozen=True)
class DeleteSnapshot(Action):
    """Delete an EtcdBackup that failed or is no longer kept."""

    backup: Ref


@dataclass(frozen=True)
class EnableDowngrade(Action):
    """Have etcd prepare for an older minor version."""

    version: str


@dataclass(frozen=True)
class CancelDowngrade(Action):
    """Cancel a pending downgrade."""


@dataclass(frozen=True)
class ExpandVolumes(Action):
    """Raise the size of PVCs; a StatefulSet that makes smaller ones is deleted without its pods and made again."""

    claims: Objects = ()
    stateful_sets: tuple[Ref, ...] = ()


@dataclass(frozen=True)
class DeleteVolumes(Action):
    """Delete the PVCs of an EtcdCluster that is being deleted with spec.deletion.storage: Delete."""

    claims: tuple[Ref, ...]
