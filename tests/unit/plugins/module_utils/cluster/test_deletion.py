"""Deleting an EtcdCluster: the final snapshot comes before everything else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import deletion
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    DeleteSnapshot,
    DeleteVolumes,
    TakeSnapshot,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan, Ref

from .builders import CLUSTER, NOW, action_of, claim, planned, remembering, running, with_claims, with_object

WANTED = {"destination": {"claim": {"name": "large"}}, "compression": "Zstd"}
DELETED = replace(CLUSTER, deleting=True, uid="12345678-9", final_snapshot=WANTED)
NAME = "e-final-12345678"


def _backup(phase: str, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "EtcdBackup",
        "metadata": {"name": NAME, "uid": "backup-1", "creationTimestamp": NOW.isoformat()},
        "spec": {**WANTED, **spec},
        "status": {"phase": phase, "message": "The volume is full."},
    }


def _with_backup(phase: str, **spec: Any) -> Observation:
    return with_object(running(), _backup(phase, **spec))


def _is_done(plan: Plan) -> bool:
    return plan.finalized and plan.action is None


def test_final_snapshot_is_taken_before_anything_is_deleted() -> None:
    first = planned(DELETED, running())
    assert (first.phase, first.reason, first.finalized) == (Phase.DELETING, Reason.FINAL_SNAPSHOT, False)
    backup = action_of(first, TakeSnapshot).backup
    assert backup["metadata"]["name"] == deletion.final_snapshot_name(DELETED) == NAME
    assert backup["metadata"]["annotations"] == {"etcdops.dev/requested-by": "EtcdCluster/e"}
    assert backup["spec"] == {"cluster": "e", **WANTED}
    assert first.action
    assert first.action.creates == (backup,)
    waiting = planned(DELETED, _with_backup("Running"))
    assert (waiting.finalized, waiting.action, waiting.reason) == (False, None, Reason.FINAL_SNAPSHOT)
    assert "The volume is full." in waiting.message
    assert "etcdops.dev/skip-final-snapshot=true" in waiting.message
    assert _is_done(planned(DELETED, _with_backup("Succeeded")))


def test_nothing_is_deleted_while_the_final_snapshot_fails() -> None:
    failed = planned(DELETED, _with_backup("Failed"))
    assert (failed.finalized, failed.action, failed.reason) == (False, None, Reason.FINAL_SNAPSHOT_FAILED)
    assert failed.reason.warning
    assert "The volume is full." in failed.message
    later = planned(DELETED, replace(_with_backup("Failed"), now=NOW + timedelta(minutes=2)))
    assert (later.finalized, action_of(later, DeleteSnapshot).backup) == (False, Ref(NAME, "backup-1"))
    corrected = planned(DELETED, _with_backup("Failed", destination={"claim": {"name": "other"}}))
    assert action_of(corrected, DeleteSnapshot).backup == Ref(NAME, "backup-1")  # at once, for the other destination


@pytest.mark.parametrize("changed", [{"skip_final_snapshot": True}, {"final_snapshot": {}}])
@pytest.mark.parametrize("phase", ["Pending", "Running", "Failed"])
def test_skipped_final_snapshot_is_not_left_behind(phase: str, changed: dict[str, Any]) -> None:
    cluster = replace(DELETED, **changed)
    skipped = planned(cluster, _with_backup(phase))
    assert (skipped.finalized, action_of(skipped, DeleteSnapshot).backup) == (False, Ref(NAME, "backup-1"))
    ending = _backup(phase)
    ending["metadata"]["deletionTimestamp"] = NOW.isoformat()
    assert _is_done(planned(cluster, with_object(running(), ending)))
    assert _is_done(planned(cluster, _with_backup("Succeeded")))


@pytest.mark.parametrize(("restored", "done"), [(0, True), (3, False)])
def test_cluster_that_never_had_data_needs_no_final_snapshot(restored: int, done: bool) -> None:
    plan = planned(replace(DELETED, restored=restored), remembering(running(), cluster_id=None))
    assert _is_done(plan) is done
    assert plan.finalized is done


def test_no_final_snapshot_is_taken_unless_it_is_wanted() -> None:
    assert _is_done(planned(replace(DELETED, final_snapshot={}), running()))


def test_volumes_are_kept_unless_their_deletion_is_wanted() -> None:
    cluster = replace(CLUSTER, deleting=True)
    observed = with_claims(running(), claim(3, "another"), claim(4, deleting=True))
    assert _is_done(planned(cluster, observed))
    plan = planned(replace(cluster, delete_storage=True), observed)
    expected = tuple(Ref(f"data-e-{number}", f"claim-{number}") for number in range(3))
    assert (plan.finalized, action_of(plan, DeleteVolumes).claims) == (True, expected)


def test_volumes_are_kept_until_the_final_snapshot_has_succeeded() -> None:
    cluster = replace(DELETED, delete_storage=True, uid=CLUSTER.uid)
    name = deletion.final_snapshot_name(cluster)
    for phase in ("Running", "Failed"):
        backup = _backup(phase)
        backup["metadata"]["name"] = name
        assert not isinstance(planned(cluster, with_object(running(), backup)).action, DeleteVolumes)
    backup = _backup("Succeeded")
    backup["metadata"]["name"] = name
    assert isinstance(planned(cluster, with_object(running(), backup)).action, DeleteVolumes)


def test_deletion_goes_on_although_the_cluster_is_paused_or_held() -> None:
    assert planned(replace(DELETED, paused=True, held_by="restore"), running()).phase is Phase.DELETING


def test_namespace_that_is_being_deleted_is_not_held_up() -> None:
    assert deletion.abandoned(DELETED).finalized
    assert deletion.gone("e").finalized
