from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.errors import StoreError
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.s3 import Settings, _bucket_url, open_bucket

KEYS: dict[str, Any] = {"access_key": "key", "secret_key": "hush-hush"}


@pytest.fixture(autouse=True)
def _no_credentials_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (Settings(), "https://backups.s3.us-east-1.amazonaws.com"),
        (Settings(region="eu-west-1"), "https://backups.s3.eu-west-1.amazonaws.com"),
        (Settings(region="eu-west-1", path_style=True), "https://s3.eu-west-1.amazonaws.com/backups"),
        (Settings(endpoint="https://s3.example.com:9000/"), "https://backups.s3.example.com:9000"),
        (Settings(endpoint="http://s3", path_style=True), "http://s3/backups"),
    ],
)
def test_bucket_is_part_of_the_host_or_of_the_path(settings: Settings, url: str) -> None:
    assert _bucket_url("backups", settings) == url


def test_credentials_of_the_node_are_used_only_when_allowed() -> None:
    with pytest.raises(StoreError, match="no credentials for the store https://s3"):
        open_bucket("backups", Settings(endpoint="https://s3"))
    open_bucket("backups", Settings(endpoint="https://s3", node_credentials=True))


def test_workload_identity_needs_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/secrets/token")
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/backup")
    open_bucket("backups", Settings())


def test_one_half_of_the_credentials_is_refused() -> None:
    with pytest.raises(StoreError, match="incomplete"):
        open_bucket("backups", Settings(access_key="key"))


def test_secret_key_is_not_shown() -> None:
    bucket = open_bucket("backups", Settings(**KEYS))
    assert KEYS["secret_key"] not in repr(Settings(**KEYS)) + repr(bucket)


def test_ca_that_is_missing_or_not_a_certificate_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no file /nowhere/ca.crt with the CA of AWS"):
        open_bucket("backups", Settings(ca="/nowhere/ca.crt", **KEYS))
    (tmp_path / "ca.crt").write_text("junk")
    with pytest.raises(StoreError, match="holds no certificate of the CA"):
        open_bucket("backups", Settings(ca=str(tmp_path / "ca.crt"), **KEYS))
