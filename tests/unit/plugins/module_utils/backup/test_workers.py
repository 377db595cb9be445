from __future__ import annotations

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import ClaimStore, Destination, S3Store
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, TlsSpec
from ansible_collections.etcdops.etcd.plugins.module_utils.backup import workers

STATUS = '{"hash":255,"revision":7,"totalKey":9,"totalSize":20480,"version":"3.6.0"}'
CLAIM = Destination(claim=ClaimStore("disk", "folder"))
S3 = Destination(s3=S3Store("bucket", "prefix"))


@pytest.mark.parametrize("log", [STATUS, f"a warning\n{STATUS}\n", f"{STATUS}\nanother line"])
def test_snapshot_status_is_found_in_the_log_of_etcdutl(log: str) -> None:
    assert workers.snapshot_status(log) == {"revision": 7, "keys": 9, "hash": "ff", "etcdVersion": "3.6.0"}


@pytest.mark.parametrize("log", [None, "", "Error: no such file", "[]", "7", STATUS[:40]])
def test_log_without_a_snapshot_status_gives_none(log: str | None) -> None:
    assert workers.snapshot_status(log) == {}


def test_location_on_a_pvc_is_translated_to_the_pod_and_back() -> None:
    path = workers.path_in_pod(CLAIM, "one.db")
    assert path == "/claim/folder/one.db"
    assert workers.in_words(CLAIM, f"{path} can't be written") == "claim://disk/folder/one.db can't be written"


def test_location_in_an_object_store_is_the_same_in_the_pod() -> None:
    assert workers.path_in_pod(S3, "one.db") == "s3://bucket/prefix/one.db"
    assert workers.in_words(S3, "/claim/one.db") == "/claim/one.db"


def test_key_of_encryption_is_told_by_its_secret() -> None:
    told = workers.in_words(S3, "/etc/etcdops/encryption/identity does not exist; it must have keys", "age")
    assert told == "key identity of Secret age does not exist; it must have keys"


def test_etcd_client_has_the_operator_certificate_if_the_cluster_uses_tls() -> None:
    cluster = Cluster("example", "ns", "uid", 1, 3, "3.6.16")
    parts = workers.etcd_client(cluster, ["example-1", "example-0"])
    assert parts.env == {
        "ETCDCTL_ENDPOINTS": "https://example-1.example-peers.ns.svc:2379,https://example-0.example-peers.ns.svc:2379",
        "ETCDCTL_CACERT": "/etc/etcdops/etcd/ca.crt",
        "ETCDCTL_CERT": "/etc/etcdops/etcd/tls.crt",
        "ETCDCTL_KEY": "/etc/etcdops/etcd/tls.key",
    }
    (volume,) = parts.volumes
    assert volume["secret"]["secretName"] == "example-operator-tls"
    plain = Cluster("example", "ns", "uid", 1, 3, "3.6.16", tls=TlsSpec("Disabled"))
    bare = workers.etcd_client(plain, ["example-0"])
    assert (bare.env, bare.volumes) == ({"ETCDCTL_ENDPOINTS": "http://example-0.example-peers.ns.svc:2379"}, ())
