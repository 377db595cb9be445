"""Objects that have a name which a restore needs, and that were not made for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.plan import (
    Claim,
    CreateObjects,
    FetchSnapshot,
    HoldCluster,
    Phase,
    Reason,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.restore.planner import plan

from .test_planner import CHECKED, CLUSTER, COPIED, FAILED, NEW, SERVING, World, _in_place, _until_restoring

OTHERS = {"data-fresh-0": Claim("claim-of-postgresql", "")}


@pytest.mark.parametrize("name", ["Job back-source", "Secret back-transfer-restore-"])
def test_restore_waits_until_the_name_is_free(name: str) -> None:
    world = World(NEW, CLUSTER)
    waiting = world.reconcile(foreign=frozenset({name}))
    assert (waiting.phase, waiting.reason, waiting.action) == (Phase.PENDING, Reason.FOREIGN_OBJECT, None)
    assert waiting.message.startswith(f"{name}: not made for this EtcdRestore")
    assert isinstance(world.reconcile(foreign=frozenset()).action, FetchSnapshot)


def test_nothing_begins_while_a_member_would_use_the_pvc_of_another_program() -> None:
    """As of a StatefulSet of PostgreSQL."""
    world = World(NEW, CLUSTER, claims=OTHERS)
    waiting = world.reconcile()
    assert (waiting.phase, waiting.reason, waiting.action) == (Phase.PENDING, Reason.FOREIGN_OBJECT, None)
    assert "PVC data-fresh-0" in waiting.message
    assert isinstance(world.reconcile(claims={}).action, FetchSnapshot)
    late = world.reconcile(source=SERVING, check_log=CHECKED, claims=OTHERS)
    assert (late.phase, late.reason, late.action) == (Phase.VERIFYING, Reason.FOREIGN_OBJECT, None)
    assert isinstance(world.reconcile(claims={}).action, CreateObjects)
    assert world.reconcile(claims=OTHERS).action is None  # neither PVCs nor Jobs of the other members
    assert world.reconcile(claims={}).action is not None


def test_members_are_not_stopped_for_a_restore_that_can_not_use_their_pvcs() -> None:
    world = _in_place()
    world.reconcile()
    world.reconcile(source=SERVING, check_log=CHECKED)
    claims = {**world.seen.claims, "data-example-1": Claim("claim-9", "an-earlier-cluster")}
    waiting = world.reconcile(backup=COPIED, claims=claims)
    assert (waiting.phase, waiting.reason, waiting.action) == (Phase.SNAPSHOTTING, Reason.FOREIGN_OBJECT, None)
    own = {**claims, "data-example-1": Claim("claim-1", "cluster-uid")}
    assert isinstance(world.reconcile(claims=own).action, HoldCluster)


def test_snapshot_of_the_current_data_waits_until_its_name_is_free() -> None:
    world = _in_place()
    world.reconcile()
    taken = frozenset({"EtcdBackup back-before-restore-"})
    waiting = world.reconcile(source=SERVING, check_log=CHECKED, foreign=taken)
    assert (waiting.phase, waiting.reason, waiting.action) == (Phase.VERIFYING, Reason.FOREIGN_OBJECT, None)
    assert isinstance(world.reconcile(foreign=frozenset()).action, CreateObjects)


def test_previous_data_is_put_back_on_its_own_pvcs_only() -> None:
    world = _in_place()
    _until_restoring(world)
    world.finish("member", FAILED)
    claims = {**world.seen.claims, "data-example-1": Claim("claim-9", "")}
    world.reconcile(claims=claims)
    taken = world.reconcile(jobs={}, foreign=frozenset({"Job back-putback-0"}))
    assert (taken.phase, taken.reason, taken.action) == (Phase.PUTTING_BACK, Reason.FOREIGN_OBJECT, None)
    made = world.reconcile(foreign=frozenset())
    assert isinstance(made.action, CreateObjects)
    assert [each["metadata"]["name"] for each in made.action.objects] == ["back-putback-0", "back-putback-2"]


def test_restore_that_waits_can_be_deleted() -> None:
    world = World(NEW, CLUSTER, claims=OTHERS)
    world.reconcile()
    deleted = plan(replace(NEW, deleting=True), world.seen, world.status)
    assert (deleted.finalized, deleted.action) == (True, None)


def test_foreign_job_does_not_count_as_one_of_ours() -> None:
    done = World(NEW, CLUSTER, foreign=frozenset({"Job back-source"}), jobs={})
    done.status = {"phase": "Succeeded", "message": "", "size": 3}
    assert done.reconcile().action is None
