from __future__ import annotations

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots import location, store
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.errors import StoreError
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.location import Location


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/var/backups/x.db", Location("/var/backups/x.db")),
        ("relative/x.db", Location("relative/x.db")),
        ("s3://backups/etcd/x.db", Location("etcd/x.db", "backups", "s3")),
    ],
)
def test_location_is_a_path_or_an_object(text: str, found: Location) -> None:
    assert location.location(text) == found
    assert str(found) == text


@pytest.mark.parametrize("text", ["s3://backups", "s3://backups/", "s3:///key", "s3://"])
def test_location_without_bucket_or_key_is_refused(text: str) -> None:
    with pytest.raises(StoreError, match="names no object"):
        location.location(text)


def test_unknown_scheme_is_refused() -> None:
    with pytest.raises(StoreError, match="gs:// is not supported"):
        location.location("gs://backups/x.db")


def test_every_scheme_can_be_opened() -> None:
    assert set(store._OPEN) == set(location.SCHEMES)
