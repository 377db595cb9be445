from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import (
    Backup,
    ClaimStore,
    Destination,
    S3Store,
    ended_at,
    manifest,
    parse,
)

S3 = S3Store("bucket", "some/prefix", "https://s3", credentials_secret="keys", ca_secret="ca", path_style=True)
IN_S3 = Backup("one", "ns", "12345678-9", 1, "example", Destination(s3=S3), compress=True, encryption_secret="age")


def _resource() -> dict[str, Any]:
    return {
        "metadata": {
            "name": "one",
            "namespace": "ns",
            "uid": "12345678-9",
            "creationTimestamp": "2026-11-16T12:00:00Z",
            "managedFields": [
                {"manager": "ansible-operator", "time": "2026-11-16T12:00:00Z"},
                {"manager": "kubectl", "time": "2026-11-16T12:00:00Z"},
            ],
        },
        "spec": {
            "cluster": "example",
            "compression": "Zstd",
            "encryption": {"secret": "age"},
            "destination": {
                "s3": {
                    "bucket": "bucket",
                    "prefix": "some/prefix",
                    "endpoint": "https://s3",
                    "credentialsSecret": "keys",
                    "caSecret": "ca",
                    "pathStyle": True,
                }
            },
        },
    }


def test_object_is_parsed() -> None:
    assert parse(_resource()) == replace(IN_S3, requested_by="kubectl")


def test_new_claim_is_a_pvc_of_its_own_named_after_the_backup() -> None:
    resource = _resource()
    resource["spec"]["destination"] = {"newClaim": {"size": "2Gi"}}
    parsed = parse(resource)
    assert parsed.destination.claim == ClaimStore("one-snapshot", own=True, size="2Gi")
    assert parsed.own_claim == "one-snapshot"


def test_name_at_the_destination_has_the_uid_and_the_encoding() -> None:
    assert IN_S3.location == "s3://bucket/some/prefix/example/one-12345678.db.zst.age"
    plain = replace(IN_S3, destination=Destination(claim=ClaimStore("disk", "/folder/")), compress=False)
    assert replace(plain, encryption_secret="").location == "claim://disk/folder/example/one-12345678.db"


def test_backup_for_another_object_names_it_and_has_no_owner() -> None:
    made = manifest("ns", "one", "EtcdCluster/example", {"cluster": "example"}, labels={"a": "b"})
    assert made["metadata"] == {
        "namespace": "ns",
        "name": "one",
        "annotations": {"etcdops.dev/requested-by": "EtcdCluster/example"},
        "labels": {"a": "b"},
    }
    assert parse({**made, "metadata": {**made["metadata"], "uid": "u"}, "spec": _resource()["spec"]}).requested_by == (
        "EtcdCluster/example"
    )


def test_end_of_a_failed_backup_is_its_transition_or_else_its_creation() -> None:
    resource = _resource()
    assert ended_at(resource) == datetime(2026, 11, 16, 12, tzinfo=UTC)
    condition = {"type": "Failed", "status": "True", "lastTransitionTime": "2026-11-16T13:00:00Z"}
    assert ended_at(resource | {"status": {"conditions": [condition]}}) == datetime(2026, 11, 16, 13, tzinfo=UTC)
