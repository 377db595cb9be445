from __future__ import annotations

from proof.half import asked_first


def test_who_is_asked_first() -> None:
    endpoints = "https://source-2.source-peers.ns.svc:2379,https://source-0.source-peers.ns.svc:2379"
    save = {"env": [{"name": "OTHER"}, {"name": "ETCDCTL_ENDPOINTS", "value": endpoints}]}
    assert asked_first({"spec": {"template": {"spec": {"initContainers": [save]}}}}) == "source-2"
