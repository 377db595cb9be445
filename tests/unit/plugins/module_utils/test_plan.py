"""What every plan has in common: the name of its action, its result for the role, and the jitter of its requeue."""

from __future__ import annotations

from uuid import uuid4

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import CancelDowngrade, RestartMember
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import SETTLED, SOON, WATCHFUL, Plan, Ref, spread


def test_settled_objects_do_not_reconcile_together() -> None:
    waits = {spread(SETTLED, str(uuid4())) for _ in range(200)}
    assert min(waits) >= 0.9 * SETTLED
    assert max(waits) <= 1.1 * SETTLED
    assert len(waits) > 20
    assert spread(SETTLED, "one") == spread(SETTLED, "one")


def test_short_requeues_have_no_jitter() -> None:
    assert {spread(SOON, str(uuid4())) for _ in range(50)} == {SOON}
    assert {spread(WATCHFUL, str(uuid4())) for _ in range(50)} == {WATCHFUL}


def test_result_has_the_name_and_the_fields_of_the_action() -> None:
    action = RestartMember(Ref("e-1", "uid"), "2", ({"kind": "ConfigMap"},))
    result = Plan(Phase.RESTARTING, Reason.RESTARTING_MEMBER, "Restarting e-1.", action, requeue=5).as_result()
    assert result == {
        "phase": "Restarting",
        "reason": "RestartingMember",
        "message": "Restarting e-1.",
        "action": {
            "name": "restart_member",
            "pod": {"name": "e-1", "uid": "uid", "version": ""},
            "transferee": "2",
            "objects": [{"kind": "ConfigMap"}],
        },
        "requeue": "5s",
        "finalized": False,
    }
    assert Plan(Phase.RUNNING, Reason.ALL_HEALTHY, "").as_result()["action"] is None
    assert CancelDowngrade().name == "cancel_downgrade"


@pytest.mark.parametrize(
    ("reason", "blocked", "warning"),
    [(Reason.UPGRADE_BLOCKED, True, True), (Reason.ROLLOUT_STOPPED, False, True), (Reason.PAUSED, False, False)],
)
def test_reason_says_whether_a_person_is_needed(reason: Reason, blocked: bool, warning: bool) -> None:
    assert (reason.blocked, reason.warning) == (blocked, warning)
