from __future__ import annotations

from dataclasses import replace

import yaml
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import TlsSpec
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import member_config

from .builders import CLUSTER


def test_file_is_yaml_with_every_option() -> None:
    options = {
        "quotaBackendBytes": "2Gi",
        "autoCompactionMode": "periodic",
        "autoCompactionRetention": "1h",
        "heartbeatInterval": 200,
        "extra": {
            "max-request-bytes": "2097152",
            "grpc-keepalive-min-time": "5s",
            "pre-vote": "true",
            "metrics": "extensive",
        },
    }
    cluster = replace(CLUSTER, options=options)
    read = yaml.safe_load(member_config.forming(cluster, cluster.version, ["e-0"])["e-0.yaml"])
    assert read["quota-backend-bytes"] == 2 * 1024**3
    assert read["auto-compaction-retention"] == "1h"
    assert read["heartbeat-interval"] == 200
    assert read["max-request-bytes"] == 2097152
    assert read["grpc-keepalive-min-time"] == 5_000_000_000
    assert read["pre-vote"] is True
    assert read["metrics"] == "extensive"
    assert read["peer-transport-security"]["client-cert-auth"] is True
    assert read["initial-cluster"] == "e-0=https://e-0.e-peers.default.svc:2380"


def test_text_that_looks_like_yaml_or_a_template_stays_text() -> None:
    nasty = "x\"\n: {{ lookup('pipe','id') }} # &a"
    cluster = replace(CLUSTER, options={"extra": {"metrics": nasty}})
    read = yaml.safe_load(member_config.forming(cluster, cluster.version, ["e-0"])["e-0.yaml"])
    assert read["metrics"] == nasty


def test_without_tls_the_file_names_no_certificates() -> None:
    cluster = replace(CLUSTER, tls=TlsSpec("Disabled"))
    read = yaml.safe_load(member_config.forming(cluster, cluster.version, ["e-0"])["e-0.yaml"])
    assert "client-transport-security" not in read
    assert read["listen-client-urls"] == "http://0.0.0.0:2379"
