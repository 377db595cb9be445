"""What the operator's modules make of an answer in the moment before they act."""

from __future__ import annotations

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.acting import without
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.membership import Wanted, decide
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import Seen, Survey

MEMBERS = tuple(Member(number, f"e-{number}", (f"https://e-{number}:2380",), (), False) for number in (1, 2, 3))
FOUND = Survey(7, True, 1, tuple(Seen(member, f"https://{member.name}:2379", None, True) for member in MEMBERS), (), {})


def test_who_is_about_to_go_is_not_counted_upon() -> None:
    removal = Wanted("absent", id=3)
    assert decide(removal, MEMBERS, FOUND.healthy)
    found = without(FOUND, {"e-1"})
    assert found.voter_urls == ["https://e-2:2379", "https://e-3:2379"]
    with pytest.raises(EtcdError, match="would lose quorum"):
        decide(removal, MEMBERS, found.healthy)
    assert decide(Wanted("absent", id=1), MEMBERS, found.healthy)  # but it may go itself
