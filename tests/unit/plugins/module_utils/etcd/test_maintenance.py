from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.connection import Connection
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.maintenance import set_downgrade
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import ClusterView, look

from sandbox import layout

from ...etcds import Cluster, eventually


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(layout.ETCD_VERSIONS[1], tmp_path)
    try:
        yield cluster.bootstrap(1)
    finally:
        cluster.end()


def test_downgrade_is_enabled_and_cancelled_once(cluster: Cluster) -> None:
    eventually(lambda: cluster.client().status().storage_version == "3.6.0")  # etcd refuses it earlier
    connection = Connection()

    def found() -> ClusterView:
        return look(connection, cluster.endpoints)

    try:
        assert set_downgrade(connection, found(), "") is False
        assert set_downgrade(connection, found(), "3.5", dry_run=True) is True
        assert found().downgrade == ""
        assert set_downgrade(connection, found(), "3.5") is True
        assert found().downgrade == "3.5.0"
        assert set_downgrade(connection, found(), "3.5") is False
        assert set_downgrade(connection, found(), "") is True
        assert found().downgrade == ""
    finally:
        connection.close()
