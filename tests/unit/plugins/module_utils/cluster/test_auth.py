"""Auth that someone enabled behind the operator's back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import status
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import IssueCertificates
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Certificates, Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import INVALID_ARGUMENT, EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import ClusterView

from .builders import (
    CLUSTER,
    NOW,
    answering,
    applied,
    down,
    nothing,
    planned,
    pod,
    running,
    situation,
    with_claim,
    with_pod,
)

OLD = NOW - timedelta(hours=1)


def _refusing_everything(observed: Observation) -> Observation:
    """In plain text, or with a certificate that has a common name."""
    urls = [CLUSTER.client_url(one.name) for one in observed.pods]
    refused = {url: EtcdError(INVALID_ARGUMENT, "etcdserver: user name is empty", url) for url in urls}
    return replace(observed, view=ClusterView(answers=refused))


def _refusing_changes(observed: Observation) -> Observation:
    """With the operator's certificate, which has no common name, etcd still answers."""
    told = {}
    for number, one in enumerate(observed.pods):
        found = observed.view.answer(CLUSTER.client_url(one.name))
        if found:
            told[number] = replace(found, needs_auth=True)
    return answering(observed, told)


def _old(observed: Observation) -> Observation:
    return replace(observed, pods=tuple(replace(one, created=OLD) for one in observed.pods))


@pytest.mark.parametrize("refusing", [_refusing_everything, _refusing_changes])
def test_operator_that_is_locked_out_says_so_and_changes_nothing(refusing: Any) -> None:
    locked_out = refusing(_old(running()))
    for spec in ({}, {"size": 5}, {"size": 1}, {"options": {"logLevel": "debug"}}, {"version": "3.6.17"}):
        cluster = replace(CLUSTER, **spec)
        plan = planned(cluster, locked_out)
        assert (plan.phase, plan.reason) == (Phase.AUTH_REQUIRED, Reason.AUTH_REQUIRED)
        plan = planned(cluster, applied(locked_out, plan))  # objects that hold no data are still corrected
        assert (plan.phase, plan.action) == (Phase.AUTH_REQUIRED, None)
        assert "3 of 3 pods are ready" in plan.message
        assert "etcdctl --user root auth disable" in plan.message
        assert "backup" not in plan.message


@pytest.mark.parametrize("refusing", [_refusing_everything, _refusing_changes])
def test_no_member_is_replaced_and_no_pod_deleted_while_the_operator_is_locked_out(refusing: Any) -> None:
    lost = with_claim(down(running(), 1, deleting=True), 1, deleting=True)
    assert planned(CLUSTER, refusing(lost)).action is None
    stuck = with_pod(running(), 2, ready=False, problem="ImagePullBackOff", template_hash="old")
    plan = planned(CLUSTER, refusing(stuck))
    assert (plan.phase, plan.action) == (Phase.AUTH_REQUIRED, None)
    assert "2 of 3 pods are ready" in plan.message


def test_availability_is_what_can_be_seen() -> None:
    for refusing, expected in (
        (_refusing_everything, ("Unknown", "AuthRequired")),
        (_refusing_changes, ("True", "QuorumHealthy")),
    ):
        locked_out = refusing(_old(running()))
        plan = planned(CLUSTER, locked_out)
        found = status.status(situation(CLUSTER, locked_out), plan, {})
        conditions = {each["type"]: (each["status"], each["reason"]) for each in found["conditions"]}
        assert conditions["Available"] == expected
        assert conditions["Degraded"] == ("True", "AuthRequired")
        first = status.events(CLUSTER, plan, {"phase": "Running"})[0]
        assert (first.type, first.reason) == ("Warning", "AuthRequired")


def test_certificates_are_renewed_while_the_operator_is_locked_out() -> None:
    locked_out = replace(_refusing_everything(running()), certificates=Certificates(due=("e-server-tls",)))
    plan = planned(CLUSTER, locked_out)
    assert (plan.phase, plan.action) == (Phase.AUTH_REQUIRED, IssueCertificates())


def test_restored_data_with_users_does_not_wait_in_silence() -> None:
    """A snapshot carries its auth state, so the first start of a restored cluster may be locked out."""
    starting = _refusing_everything(replace(nothing(), pods=tuple(map(pod, range(3)))))
    assert planned(CLUSTER, starting).phase is Phase.AUTH_REQUIRED
