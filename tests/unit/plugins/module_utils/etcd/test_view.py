"""What can't be seen from the modules' own tests."""

from __future__ import annotations

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError, Unreachable
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member, MemberList, Status
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import Connection, Look, _undiscovered, survey

from ...etcds import Certificates, Cluster


def _member(member_id: int, *client_urls: str) -> Member:
    return Member(member_id, f"m{member_id}", (f"http://m{member_id}:2380",), client_urls, False)


@pytest.mark.parametrize(
    ("secure_only", "expected"),
    [(True, ["https://m3:2379"]), (False, ["http://m2:2379", "http://m3:2379"])],
)
def test_who_uses_tls_is_not_led_to_plain_text(secure_only: bool, expected: list[str]) -> None:
    listed = MemberList(
        7,
        (
            _member(1, "https://m1:2379"),
            _member(2, "http://m2:2379"),
            _member(3, "http://m3:2379", "https://m3:2379"),
            _member(4, "https://m4:2379"),  # asked, and down
            _member(5, "unix://socket", "nonsense"),
            _member(6),  # not started
        ),
    )
    status = Status(1, 7, "3.6.16", "3.6.0", 1, 2, 9, 9, 1, 1, 1, False, ())
    found: dict[str, Look | EtcdError] = {
        "https://10.0.0.1:2379": Look(status, "", listed, agreed=True),
        "https://m4:2379": Unreachable("down"),
    }
    assert _undiscovered(listed, found, secure_only=secure_only) == expected


def test_the_same_endpoint_twice_is_asked_once(one: Cluster) -> None:
    connection = Connection()
    try:
        assert list(survey(connection, one.endpoints * 2).endpoints) == one.endpoints
    finally:
        connection.close()


def test_a_password_is_not_in_the_repr(certificates: Certificates) -> None:
    assert "hush" not in repr(Connection(certificates.client, 1.0, "root", "hush"))
