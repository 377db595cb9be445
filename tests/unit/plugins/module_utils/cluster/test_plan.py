from __future__ import annotations

from uuid import uuid4

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import SETTLED, SOON, WATCHFUL, spread


def test_settled_clusters_are_not_looked_at_at_once() -> None:
    waits = {spread(SETTLED, str(uuid4())) for _ in range(200)}
    assert min(waits) >= 0.9 * SETTLED
    assert max(waits) <= 1.1 * SETTLED
    assert len(waits) > 20
    assert spread(SETTLED, "one") == spread(SETTLED, "one")


def test_what_moves_is_looked_at_as_soon_as_before() -> None:
    assert {spread(SOON, str(uuid4())) for _ in range(50)} == {SOON}
    assert {spread(WATCHFUL, str(uuid4())) for _ in range(50)} == {WATCHFUL}
