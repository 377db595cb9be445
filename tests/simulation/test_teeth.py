"""The simulation finds bugs: every deliberate breakage is caught, most within the usual number of schedules."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import (
    acting,
    alarms,
    desired,
    foreign_objects,
    health,
    joining,
    manifests,
    member_config,
    membership,
    observe,
    planner,
    repair,
    restart,
    rollout,
    scaling,
    status,
    upgrade,
    volumes,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import UpdateObjects
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.membership import Membership, MemberSlot
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Claim, Pod
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.situation import Situation
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import restart_order as order_of_restarts
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import effects
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan, Ref

from . import role
from .etcd import ViolationError
from .invariants import Invariants
from .schedule import play_all

Patch = pytest.MonkeyPatch
_PLAN = planner.plan
_SEEDS = 10_000  # at most; a change of the schedules moves rare events to other seeds


def _never_sealed(patch: Patch) -> None:
    patch.setattr(desired, "_is_unstarted", lambda _, slot: slot.member is not None)


def _opened_when_unhealthy(patch: Patch) -> None:
    patch.setattr(desired, "_is_unstarted", lambda _, slot: slot.member is not None and not slot.answers)
    # Disable the direct checks, so that the consequence must be caught.
    patch.setattr(Invariants, "after_reconcile", lambda *_: None)
    patch.setattr("tests.simulation.faults.is_sealed", lambda *_: True)


def _reversed(action: str) -> Callable[[Patch], None]:
    """The tasks of an action run in the opposite order."""

    def breakage(patch: Patch) -> None:
        read = role.tasks

        def tasks(path: Path) -> tuple[role.Task, ...]:
            found = read(path)
            if path.stem != action:
                return found
            return tuple(replace(task, when=lambda _: True) for task in reversed(found))

        patch.setattr(role, "tasks", tasks)

    return breakage


def _two_learners(patch: Patch) -> None:
    change = planner.change

    def resize_first(s: Situation, members: Membership) -> Plan | None:
        more = None if members.undependable else scaling.resize(s, members)
        return more or change(s, members)

    patch.setattr(planner, "change", resize_first)
    patch.setattr(Membership, "has_learner", property(lambda _: False))


def _ignores_unhealthy_voters(patch: Patch) -> None:
    patch.setattr(Membership, "undependable", property(lambda _: []))


def _promotes_while_a_voter_is_down(patch: Patch) -> None:
    class Careless(Membership):
        undependable = property(lambda _: [])

    advance = joining._advance

    def careless(s: Situation, members: Membership, slot: MemberSlot) -> Plan:
        found = Careless(members.slots, members.unmanaged, members.cluster_version, members.downgrade)
        return advance(s, found, slot)

    patch.setattr(joining, "_advance", careless)


def _leftover_claims(patch: Patch, found: Callable[..., tuple[Ref, ...]]) -> None:
    for module in (desired, scaling):
        patch.setattr(module, "leftover_claims", found)


def _deletes_claims_of_members(patch: Patch) -> None:
    def leftover(s: Situation, _: Membership, *, leaving: str = "") -> tuple[Ref, ...]:
        wanted = {f"data-{s.cluster.pod_name(number)}" for number in range(s.cluster.size)}
        found = [claim for claim in s.observed.claims if claim.name not in wanted and leaving is not None]
        return tuple(Ref(claim.name, claim.uid) for claim in found)

    _leftover_claims(patch, leftover)


def _forms_again(patch: Patch) -> None:
    def formed(cluster: Cluster, version: str, pods: list[str], *_: Any) -> dict[str, str]:
        return member_config.forming(cluster, version, pods)

    patch.setattr(member_config, "formed", formed)


def _treats_down_as_lost(patch: Patch) -> None:
    def loss(pod: Pod | None, _: Claim | None, *, others_healthy: bool) -> str:
        return "it is down" if others_healthy or pod is None else ""

    patch.setattr(membership, "loss", loss)


def _treats_used_claim_as_lost(patch: Patch) -> None:
    def loss_of_claim(_: Pod | None, claim: Claim | None) -> str:
        return "its PVC is being deleted" if claim and claim.deleting else ""

    patch.setattr(membership, "loss_of_claim", loss_of_claim)


def _ties_volumes(patch: Patch) -> None:
    patch.setattr(observe, "_is_stranded", lambda *_: True)


def _adopts_foreign_claims(patch: Patch) -> None:
    claim_of = observe.claim_of

    def claim(manifest: Manifest, stranded: Any) -> Claim:
        own = "uid-1" if manifests.UID_LABEL in manifest["metadata"]["labels"] else ""
        return replace(claim_of(manifest, stranded), cluster_uid=own)

    patch.setattr(observe, "claim_of", claim)


def _takes_foreign_objects_over(patch: Patch) -> None:
    patch.setattr(foreign_objects, "foreign_among", lambda *_: ())
    patch.setattr(effects, "is_of_same_owner", lambda *_: True)


def _planning(change: Callable[[Situation, Plan], Plan]) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(planner, "plan", lambda s: change(s, _PLAN(s)))


_NUMBERS = itertools.count()


def _always_writes(_: Situation, plan: Plan) -> Plan:
    return replace(plan, message=f"{plan.message} {next(_NUMBERS)}")


def _deletes_without_quorum(s: Situation, plan: Plan) -> Plan:
    if plan.phase is not Phase.QUORUM_LOST:
        return plan
    pod = s.observed.pod(s.cluster.pod_name(0))
    return replace(plan, action=UpdateObjects(delete_pods=(Ref(pod.name, pod.uid),) if pod else ()))


def _never_paused(patch: Patch) -> None:
    patch.setattr(planner, "plan", lambda s: _PLAN(replace(s, cluster=replace(s.cluster, paused=False))))


def _restarts_while_another_is_down(patch: Patch) -> None:
    for module in (order_of_restarts, rollout):
        patch.setattr(module, "objection", lambda *_: "")
    patch.setattr(rollout, "_waiting", lambda *_: None)


def _leader_first(patch: Patch) -> None:
    def order(voters: Sequence[order_of_restarts.Voter]) -> list[order_of_restarts.Voter]:
        return sorted((voter for voter in voters if not voter.updated), key=lambda voter: not voter.leads)

    patch.setattr(rollout, "restart_order", order)


def _one_file_for_all_versions(patch: Patch) -> None:
    formed = member_config.formed

    def same(cluster: Cluster, version: str, pods: list[str], opened: Any, _kept: Any = None) -> dict[str, str]:
        return formed(cluster, version, pods, opened)

    patch.setattr(member_config, "formed", same)


def _claim_template_in_place(patch: Patch) -> None:
    def objects(s: Situation, replicas: int, files: dict[str, str], *, voters: int) -> manifests.Objects:
        return manifests.objects(s.cluster, s.version, replicas, files, voters)

    patch.setattr(desired, "objects", objects)


def _volumes_stay(patch: Patch) -> None:
    patch.setattr(volumes, "expand", lambda _: None)
    patch.setattr(volumes, "expand_meanwhile", lambda _, planned: planned)


def _version_at_once(patch: Patch) -> None:
    patch.setattr(Situation, "as_rendered", lambda s: s)


def _always(module: Any, name: str, value: Any) -> Callable[[Patch], None]:
    """A function that always returns the same."""
    return lambda patch: patch.setattr(module, name, lambda *_, **__: value)


BREAKAGES: dict[str, tuple[Callable[[Patch], None], str]] = {
    "a file is never sealed": (_never_sealed, "a member that has started is sealed|a learner is sealed before"),
    "the file of an unhealthy voter is opened": (_opened_when_unhealthy, "no voter loses its data"),
    "a learner is sealed after its promotion": (
        _reversed("promote_learner"),
        "a learner is sealed before its promotion",
    ),
    "a pod is deleted before its member is removed": (
        _reversed("remove_member"),
        "a pod is removed only after its member",
    ),
    "two learners": (_two_learners, "one learner at a time"),
    "unhealthy voters are ignored": (_ignores_unhealthy_voters, ".* while (another|a) voter is down"),
    "a promotion while a voter is down": (_promotes_while_a_voter_is_down, "no member joins while a voter is down"),
    "PVCs of members are deleted": (
        _deletes_claims_of_members,
        "a voter's PVC is never deleted|a PVC of another cluster",
    ),
    "`new` after the first quorum": (_forms_again, "initial-cluster-state `new` only before the first quorum"),
    "a member that is down counts as lost": (_treats_down_as_lost, "only a lost member is replaced"),
    "every volume counts as tied to its node": (_ties_volumes, "only a lost member is replaced"),
    "a PVC that a pod still uses counts as lost": (_treats_used_claim_as_lost, "only a lost member is replaced"),
    "a foreign PVC is adopted": (_adopts_foreign_claims, "a PVC of another cluster is never"),
    "foreign objects are taken over": (_takes_foreign_objects_over, "a foreign object is never changed"),
    "deletions without quorum": (
        _planning(_deletes_without_quorum),
        "no deletion or membership change without quorum|a voter's pod",
    ),
    "every reconcile writes": (_planning(_always_writes), "a second reconcile writes no status"),
    "paused is ignored": (_never_paused, "a paused cluster is not changed"),
    "alarms are not reported": (
        _always(status, "worst", None),
        "Available is never True while writes are refused",
    ),
    "restarts while data is corrupt": (
        _always(alarms, "is_corrupt", False),
        "no member restarts while data is corrupt",
    ),
    "auth that refuses the operator is ignored": (
        lambda patch: patch.setattr(planner, "auth_required", health.health),
        "quorum is not called lost while auth refuses",
    ),
    "no member is replaced": (_always(repair, "repair", None), "the cluster converges"),
    "no learner is ever in sync": (_always(joining, "_may_be_promoted", False), "the cluster converges"),
    "restarts while another member is down": (
        _restarts_while_another_is_down,
        "a rollout (restarts|never)|the leader is restarted last",
    ),
    "the leader is not restarted last": (_leader_first, "the leader is restarted last"),
    "leadership is not moved": (
        _always(restart, "transferee", None),
        "leadership is moved before|a rollout (restarts|never)",
    ),
    "no snapshot before an upgrade": (
        _always(upgrade, "snapshot", None),
        "no member changes its version without a snapshot",
    ),
    "pods have the version at once": (
        _version_at_once,
        "no minor version is skipped|no member (changes its version|runs a version below|reads)",
    ),
    "every path is allowed": (
        _always(upgrade, "refusal", ""),
        "no minor version is skipped|no member (changes its version|runs a version below|reads)|the cluster converges",
    ),
    "logs are not dropped": (_always(upgrade, "drops_log_of", ""), "no member reads a log of an incompatible version"),
    "a pending downgrade keeps a learner out": (_always(joining, "_admit", None), "the cluster converges"),
    "a downgrade is not enabled": (_always(upgrade, "downgrade_to", ""), "no member runs a version below"),
    "one configuration file for all versions": (
        _one_file_for_all_versions,
        "a configuration file matches the version",
    ),
    "the PVC template is changed in place": (_claim_template_in_place, "volumeClaimTemplates are not changed in place"),
    "no member restarts": (_always(rollout, "rollout", None), "the cluster converges, except for .*settings"),
    "PVCs do not grow": (
        _volumes_stay,
        "a quorum of intact members recovers|the cluster converges, except for .*capacity",
    ),
    "full volumes grow with a quorum only": (
        lambda patch: patch.setattr(volumes, "expand_meanwhile", lambda _, planned: planned),
        "a quorum of intact members recovers|the cluster converges, except for .*space",
    ),
    "a rejected spec.pod blocks everything": (
        _always(planner, "rejected", Plan(Phase.UNSUPPORTED, Reason.REJECTED, "Correct spec.pod.")),
        "lost members are replaced although spec.pod is rejected",
    ),
    "objects are overwritten whatever they are by now": (
        lambda patch: patch.setattr(desired, "conditional", lambda wanted, _: wanted),
        "initial-cluster-state `new` only before the first quorum|a pod is removed only after its member",
    ),
    "etcd is not asked again before PVCs and pods are deleted": (
        _always(acting, "_require_vacant", None),
        "a voter's (PVC|pod) is never",
    ),
    "PVCs are left over": (
        lambda patch: _leftover_claims(patch, lambda *_, **__: ()),
        "the cluster converges, except for claims",
    ),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_breakage_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    breakage, what = BREAKAGES[name]
    breakage(monkeypatch)
    with pytest.raises(ViolationError, match=f"^({what})"):
        play_all(range(_SEEDS))
