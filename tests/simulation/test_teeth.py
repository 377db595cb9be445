"""The simulation has teeth: whatever is broken on purpose is caught within the usual number of schedules."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import (
    config,
    desired,
    manifests,
    observe,
    planner,
    upgrade,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import rollout as roll
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import scaling as members
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import slots as team
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import volumes as expansion
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import UID_LABEL
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Claim, Observed, Pod
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Plan, Step
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.scaling import Case
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.slots import Seat, Team
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import rollout
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from . import role
from .etcd import ViolationError
from .invariants import Invariants
from .schedule import play_all
from .test_schedules import SEEDS

Patch = pytest.MonkeyPatch
_PLAN = planner.plan


def _open_for_ever(patch: Patch) -> None:
    patch.setattr(desired, "_is_unstarted", lambda _cluster, _seen, seat: seat.member is not None)


def _open_as_soon_as_it_is_silent(patch: Patch) -> None:
    patch.setattr(desired, "_is_unstarted", lambda _cluster, _seen, seat: seat.member is not None and not seat.answers)
    patch.setattr(Invariants, "ran", lambda *_: None)  # what comes of it is to be seen
    patch.setattr("tests.simulation.faults.is_sealed", lambda *_: True)


def _reversed(step: str) -> Callable[[Patch], None]:
    def breakage(patch: Patch) -> None:
        read = role.tasks

        def tasks(path: Path) -> tuple[role.Task, ...]:
            found = read(path)
            if path.stem != step:
                return found
            return tuple(replace(task, when=lambda _: True) for task in reversed(found))

        patch.setattr(role, "tasks", tasks)

    return breakage


def _two_learners(patch: Patch) -> None:
    change = members.change

    def hasty(cluster: Cluster, seen: Observed, found: Team) -> Plan | None:
        more = None if found.unwell else members._resize(Case(cluster, seen, found))
        return more or change(cluster, seen, found)

    patch.setattr(members, "change", hasty)
    patch.setattr(Team, "crowded", property(lambda _: False))


def _careless(patch: Patch) -> None:
    patch.setattr(Team, "unwell", property(lambda _: []))


def _promotes_while_one_is_down(patch: Patch) -> None:
    class Careless(Team):
        unwell = property(lambda _: [])

    go_on = members._go_on

    def careless(case: Case, learner: Seat) -> Plan:
        return go_on(replace(case, team=Careless(case.team.seats, case.team.strangers)), learner)

    patch.setattr(members, "_go_on", careless)


def _claims_of_members(patch: Patch) -> None:
    def surplus(cluster: Cluster, seen: Observed, _team: Team, *, going: str = "") -> tuple[str, ...]:
        wanted = {f"data-{cluster.pod_name(number)}" for number in range(cluster.size)}
        return tuple(claim.name for claim in seen.claims if claim.name not in wanted and going is not None)

    patch.setattr(desired, "leftover_claims", surplus)


def _new_again(patch: Patch) -> None:
    def formed(cluster: Cluster, pods: list[str], *_: Any) -> dict[str, str]:
        return config.forming(cluster, pods)

    patch.setattr(config, "formed", formed)


def _impatient(patch: Patch) -> None:
    def loss(pod: Pod | None, _claim: Claim | None, *, others_well: bool) -> str:
        return "it is down" if others_well or pod is None else ""

    patch.setattr(team, "loss", loss)


def _takes_disks_early(patch: Patch) -> None:
    def going(_pod: Pod | None, claim: Claim | None) -> str:
        return "its disk is being deleted" if claim and claim.deleting else ""

    patch.setattr(team, "loss_of_claim", going)


def _adopts(patch: Patch) -> None:
    look = observe._claim

    def claim(manifest: Manifest, nodes: Any) -> Claim:
        ours = "uid-1" if UID_LABEL in manifest["metadata"]["labels"] else ""
        return replace(look(manifest, nodes), cluster_uid=ours)

    patch.setattr(observe, "_claim", claim)


def _planning(change: Callable[[Cluster, Plan], Plan]) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(planner, "plan", lambda cluster, seen: change(cluster, _PLAN(cluster, seen)))


_NUMBERS = itertools.count()


def _restless(_cluster: Cluster, plan: Plan) -> Plan:
    return replace(plan, message=f"{plan.message} {next(_NUMBERS)}")


def _desperate(cluster: Cluster, plan: Plan) -> Plan:
    if plan.phase is not Phase.QUORUM_LOST:
        return plan
    return replace(plan, step=Step.UPDATE, delete_pods=(cluster.pod_name(0),))


def _never_paused(patch: Patch) -> None:
    patch.setattr(planner, "plan", lambda cluster, seen: _PLAN(replace(cluster, paused=False), seen))


def _reckless(patch: Patch) -> None:
    for module in (rollout, roll):
        patch.setattr(module, "objection", lambda *_: "")
    patch.setattr(roll, "_waiting", lambda *_: None)


def _leader_first(patch: Patch) -> None:
    def order(voters: Sequence[rollout.Voter]) -> list[rollout.Voter]:
        return sorted((voter for voter in voters if not voter.renewed), key=lambda voter: not voter.leads)

    patch.setattr(roll, "order", order)


def _one_file_for_all(patch: Patch) -> None:
    formed = config.formed
    patch.setattr(config, "formed", lambda cluster, pods, opened, _kept=None: formed(cluster, pods, opened))


def _claims_in_place(patch: Patch) -> None:
    def objects(
        cluster: Cluster, _seen: Observed, number: int, files: dict[str, str], *, voters: int
    ) -> list[Manifest]:
        return manifests.objects(cluster, number, files, voters)

    patch.setattr(desired, "objects", objects)


def _nothing(module: Any, name: str, value: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(module, name, lambda *_, **__: value)


BREAKAGES: dict[str, tuple[Callable[[Patch], None], str]] = {
    "a file is never sealed": (_open_for_ever, "who has started is sealed|sealed before it votes"),
    "a silent voter's file is opened": (_open_as_soon_as_it_is_silent, "amnesia"),
    "a learner is sealed after it votes": (_reversed("promote"), "sealed before it votes"),
    "a pod goes before its member": (_reversed("leave"), "a pod goes only after its member"),
    "two learners": (_two_learners, "one learner at a time"),
    "a voter that is down does not count": (_careless, ".* while (another|a voter) is down"),
    "a promotion while a voter is down": (_promotes_while_one_is_down, "nobody joins while a voter is down"),
    "claims of members are deleted": (_claims_of_members, "a voter's claim is never deleted|a foreign claim"),
    "`new` after the first quorum": (_new_again, "`new` only before the first quorum"),
    "who is down is taken for lost": (_impatient, "only what is lost is replaced"),
    "a disk that a pod still holds is taken for lost": (_takes_disks_early, "only what is lost is replaced"),
    "a foreign claim is taken over": (_adopts, "a foreign claim is never"),
    "deletions without quorum": (_planning(_desperate), "nothing is deleted or changed without quorum|a voter's pod"),
    "a run that always writes": (_planning(_restless), "a second run writes no status"),
    "paused is ignored": (_never_paused, "paused means hands off"),
    "nobody is replaced": (_nothing(members, "_repair", None), "the cluster becomes whole"),
    "no learner is ever in sync": (_nothing(members, "_in_sync", False), "the cluster becomes whole"),
    "a roll while somebody is down": (_reckless, "a roll (restarts|never)"),
    "the leader is not the last": (_leader_first, "the leader is the last"),
    "leadership is not handed over": (_nothing(rollout, "gate", None), "who leads hands over|a roll (restarts|never)"),
    "no snapshot": (_nothing(upgrade, "_snapshot", None), "nobody moves without a snapshot"),
    "pods have the version at once": (
        lambda patch: patch.setattr(upgrade, "held", lambda cluster, _: cluster),
        "no minor version is skipped|nobody (moves|goes below|reads)",
    ),
    "any way is good": (
        _nothing(upgrade, "refusal", ""),
        "no minor version is skipped|nobody (moves|goes below|reads)|the cluster becomes whole",
    ),
    "logs are not dropped": (_nothing(upgrade, "drops_log_of", ""), "nobody reads a log that it can't"),
    "etcd is not told of a downgrade": (_nothing(upgrade, "downgrade_to", ""), "nobody goes below what etcd"),
    "files of one version for all": (_one_file_for_all, "a file is for the version that reads it"),
    "claims are changed in place": (_claims_in_place, "what makes claims is not changed in place"),
    "nobody restarts": (_nothing(roll, "change", None), "the cluster becomes whole, but for .*settings"),
    "claims do not grow": (_nothing(expansion, "change", None), "the cluster becomes whole, but for .*room"),
    "claims are left over": (_nothing(desired, "leftover_claims", ()), "the cluster becomes whole, but for claims"),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_it_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    breakage, what = BREAKAGES[name]
    breakage(monkeypatch)
    with pytest.raises(ViolationError, match=f"^({what})"):
        play_all(range(SEEDS))
