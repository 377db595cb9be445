from __future__ import annotations

from tests.e2e.faults.interrupt import first_endpoint


def test_first_endpoint_is_the_member_that_is_tried_first() -> None:
    endpoints = "https://source-2.source-peers.ns.svc:2379,https://source-0.source-peers.ns.svc:2379"
    save = {"env": [{"name": "OTHER"}, {"name": "ETCDCTL_ENDPOINTS", "value": endpoints}]}
    assert first_endpoint({"spec": {"template": {"spec": {"initContainers": [save]}}}}) == "source-2"
