"""The snapshot before an upgrade: without a verified one no member moves."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import UpgradeSpec
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    AddLearner,
    DeleteSnapshot,
    EnableDowngrade,
    TakeSnapshot,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.memory import Upgrade, recall
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.upgrade_snapshot import begin
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan, Ref

from .builders import (
    CLUSTER,
    NOW,
    action_of,
    down,
    image_version,
    kinds_of,
    planned,
    recorded,
    remembering,
    running_version,
    situation,
    with_object,
    with_versions,
)

NEW = replace(CLUSTER, version="3.6.17", generation=2, upgrade=UpgradeSpec(backup={"destination": {"newClaim": {}}}))
ELSEWHERE = replace(NEW, upgrade=UpgradeSpec(backup={"destination": {"claim": {"name": "large"}}}))


def _after(observed: Observation, plan: Plan) -> Observation:
    """The EtcdBackup was created, and the status written."""
    backup = action_of(plan, TakeSnapshot).backup
    meta = backup["metadata"] | {"creationTimestamp": NOW.isoformat(), "uid": "backup-1"}
    return recorded(with_object(observed, {**backup, "metadata": meta}), plan)


def _started() -> Observation:
    return _after(running_version("3.6.16"), planned(NEW, running_version("3.6.16")))


def _name(observed: Observation) -> str:
    assert observed.memory.upgrade
    assert observed.memory.upgrade.snapshot
    return observed.memory.upgrade.snapshot


def _backup(observed: Observation, phase: str, **more: Any) -> Observation:
    """The EtcdBackup is in this phase."""
    made = observed.objects[f"EtcdBackup/{_name(observed)}"]
    done = {"phase": phase, "clusterID": "abc", "completionTime": NOW.isoformat(), "message": "It is full.", **more}
    return with_object(observed, {**made, "status": done})


def test_snapshot_comes_first_and_pods_keep_their_version_until_it_succeeded() -> None:
    first = planned(NEW, running_version("3.6.16"))
    assert (first.phase, first.reason) == (Phase.UPGRADING, Reason.TAKING_SNAPSHOT)
    backup = action_of(first, TakeSnapshot).backup
    assert backup["kind"] == "EtcdBackup"
    assert backup["metadata"]["name"].startswith("e-before-3-6-17-")
    assert backup["metadata"]["labels"]["etcdops.dev/upgrade"] == "e"
    assert "ownerReferences" not in backup["metadata"]
    assert backup["spec"] == {"cluster": "e", "destination": {"newClaim": {}}, "deletion": {"storage": "Delete"}}
    observed = _started()
    assert _name(observed) == backup["metadata"]["name"]
    waiting = planned(NEW, observed)
    assert (waiting.action, waiting.reason) == (None, Reason.TAKING_SNAPSHOT)
    release = planned(NEW, _backup(observed, "Succeeded"))
    assert (release.reason, image_version(release)) == (Reason.UPGRADE_STARTED, "3.6.17")


def test_pod_that_is_recreated_meanwhile_keeps_its_version() -> None:
    cluster = replace(NEW, size=5)
    observed = down(_started(), 2)
    observed = with_object(observed, {**observed.objects["Service/e-peers"], "spec": {}})
    assert kinds_of(planned(cluster, observed)) == ["Service", "PodDisruptionBudget"]  # and no StatefulSet


def test_no_member_moves_after_a_failed_snapshot_and_it_is_tried_again() -> None:
    observed = _backup(_started(), "Failed")
    failed = planned(NEW, observed)
    assert (failed.action, failed.reason) == (None, Reason.SNAPSHOT_FAILED)
    assert "It is full." in failed.message
    again = planned(NEW, replace(observed, now=NOW + timedelta(minutes=2)))
    assert again.reason is Reason.SNAPSHOT_FAILED
    assert action_of(again, DeleteSnapshot).backup == Ref(_name(observed), "backup-1")
    assert isinstance(planned(ELSEWHERE, observed).action, DeleteSnapshot)
    # A minute from its failure on, so that it can be read.
    late = {"type": "Failed", "status": "True", "lastTransitionTime": (NOW + timedelta(minutes=2)).isoformat()}
    observed = _backup(observed, "Failed", conditions=[late])
    assert planned(NEW, replace(observed, now=NOW + timedelta(minutes=2))).action is None


def test_pending_snapshot_tells_why_and_is_deleted_when_another_is_wanted() -> None:
    observed = _backup(_started(), "Pending", message="There is no PVC.")
    waiting = planned(NEW, observed)
    assert (waiting.action, waiting.reason) == (None, Reason.TAKING_SNAPSHOT)
    assert waiting.message.endswith("There is no PVC.")
    assert action_of(planned(ELSEWHERE, observed), DeleteSnapshot).backup == Ref(_name(observed), "backup-1")


@pytest.mark.parametrize("wrong", [{"clusterID": "def"}, {"completionTime": (NOW - timedelta(hours=1)).isoformat()}])
def test_snapshot_of_another_cluster_or_an_old_one_does_not_count(wrong: dict[str, str]) -> None:
    observed = _started()
    again = planned(NEW, _backup(replace(observed, now=NOW + timedelta(seconds=1)), "Succeeded", **wrong))
    assert (again.reason, image_version(again)) == (Reason.TAKING_SNAPSHOT, "")
    upgrade = recall(again.record).upgrade
    assert upgrade
    assert upgrade.snapshot == action_of(again, TakeSnapshot).backup["metadata"]["name"]
    assert upgrade.snapshot != _name(observed)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Failed"])
def test_snapshot_of_an_upgrade_that_was_taken_back_is_not_left_behind(phase: str) -> None:
    observed = _backup(_started(), phase)
    back = planned(CLUSTER, observed)
    assert action_of(back, DeleteSnapshot).backup == Ref(_name(observed), "backup-1")
    made = observed.objects[f"EtcdBackup/{_name(observed)}"]
    ending = {**made, "metadata": {**made["metadata"], "deletionTimestamp": NOW.isoformat()}}
    done = planned(CLUSTER, with_object(observed, ending))
    upgrade = recall(done.record).upgrade
    assert done.action is None
    assert upgrade
    assert upgrade.completed
    assert planned(CLUSTER, _backup(_started(), "Succeeded")).action is None


def test_unfinished_snapshot_is_deleted_when_it_is_to_be_skipped() -> None:
    observed = _backup(_started(), "Running")
    skipping = planned(replace(NEW, upgrade=UpgradeSpec(snapshot=False)), observed)
    assert skipping.phase is Phase.UPGRADING
    assert action_of(skipping, DeleteSnapshot).backup == Ref(_name(observed), "backup-1")


def test_size_may_change_while_the_snapshot_fails() -> None:
    assert action_of(planned(replace(NEW, size=5), _backup(_started(), "Failed")), AddLearner).pod == "e-3"


def test_no_snapshot_is_taken_with_mode_skip() -> None:
    release = planned(replace(NEW, upgrade=UpgradeSpec(snapshot=False)), running_version("3.6.16"))
    assert (release.reason, image_version(release)) == (Reason.UPGRADE_STARTED, "3.6.17")
    assert "No snapshot was taken" in release.message


def test_snapshot_is_kept_as_long_as_keep_for_says() -> None:
    cluster = replace(CLUSTER, upgrade=UpgradeSpec(keep_for=timedelta(hours=2)))
    upgrade = Upgrade("3.6.15", "3.6.16", NOW, "e-before", completed=NOW)
    backup = {"kind": "EtcdBackup", "metadata": {"name": "e-before", "uid": "backup-1"}}
    observed = with_object(remembering(running_version("3.6.16"), upgrade=upgrade), backup)
    assert planned(cluster, replace(observed, now=NOW + timedelta(hours=1))).action is None
    expired = planned(cluster, replace(observed, now=NOW + timedelta(hours=3)))
    assert action_of(expired, DeleteSnapshot).backup == Ref("e-before", "backup-1")
    assert planned(CLUSTER, replace(observed, now=NOW + timedelta(days=300))).action is None


def test_snapshot_name_is_never_too_long() -> None:
    s = situation(replace(NEW, name="a" * 40, version="3.6.199"), running_version("3.6.16"))
    assert len(begin(replace(s, target="3.6.199")).snapshot) <= 55


def test_snapshot_is_not_taken_again_while_etcd_prepares() -> None:
    """However long that takes: the upgrade has begun."""
    older = replace(NEW, version="3.5.35", upgrade=replace(NEW.upgrade, allow_downgrade=True))
    observed = _backup(_after(running_version("3.6.16"), planned(older, running_version("3.6.16"))), "Succeeded")
    enabling = planned(older, observed)
    assert (enabling.reason, enabling.action) == (Reason.ENABLING_DOWNGRADE, EnableDowngrade("3.5"))
    later = replace(recorded(observed, enabling), now=NOW + timedelta(hours=1))
    waiting = with_versions(later, ["3.6.16"] * 3, "3.6", downgrade="3.5.0")
    assert planned(older, waiting).reason is Reason.ENABLING_DOWNGRADE
    assert planned(older, later).reason is Reason.TAKING_SNAPSHOT  # the downgrade was cancelled
