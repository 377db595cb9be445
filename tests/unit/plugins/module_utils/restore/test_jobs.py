"""The Jobs of a restore: what runs in them, and that a real kube-apiserver accepts them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import ClaimStore, Destination, S3Store
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.api.restore import Restore, Snapshot
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import jobs

from tests.unit.plugins.objects import Namespace

SNAPSHOT = Snapshot(Destination(claim=ClaimStore("disk")), "example/one.db", sha256="ab", encryption_secret="age")
RESTORE = Restore("back", "ns", "12345678-9", 1, "example", True, snapshot=SNAPSHOT)
POD = {"tolerations": [{"key": "etcd"}], "nodeSelector": {"disk": "fast"}, "imagePullSecrets": [{"name": "pull"}]}
CLUSTER = Cluster("example", "ns", "cluster-uid", 1, 3, "3.6.16", pod=POD)
SOURCE = jobs.Source("10.0.0.9", 3, "operator:1")


def _spec(job: Manifest) -> Manifest:
    spec: Manifest = job["spec"]["template"]["spec"]
    return spec


def _containers(job: Manifest) -> dict[str, Manifest]:
    spec = _spec(job)
    return {each["name"]: each for each in [*spec.get("initContainers", []), *spec["containers"]]}


def _env(container: Manifest) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in container["env"]}


def _mounts(container: Manifest) -> dict[str, str]:
    return {each["name"]: each["mountPath"] for each in container["volumeMounts"]}


def _all() -> list[Manifest]:
    return [
        jobs.source(RESTORE, SNAPSHOT, CLUSTER, "operator:1", near="example-0"),
        jobs.member(RESTORE, CLUSTER, 1, SOURCE),
        jobs.after(RESTORE, CLUSTER, "putback", 1, "operator:1"),
        jobs.after(RESTORE, CLUSTER, "tidy", 1, "operator:1"),
    ]


def test_source_job_fetches_verifies_and_hands_out_the_snapshot() -> None:
    job = jobs.source(RESTORE, SNAPSHOT, CLUSTER, "operator:1")
    assert job["metadata"]["name"] == "back-source"
    fetch, check, serve = _containers(job).values()
    assert [fetch["name"], check["name"], serve["name"]] == ["fetch", "check", "serve"]
    env = _env(fetch)
    assert (env["SNAPSHOT_SRC"], env["SNAPSHOT_SHA256"]) == ("/claim/example/one.db", "ab")
    assert env["SNAPSHOT_COPY"] == check["command"][3] == serve["command"][-1] == "/scratch/snapshot.db"
    assert (fetch["image"], check["image"], serve["image"]) == ("operator:1", CLUSTER.image(), "operator:1")
    assert "affinity" not in _spec(job)


def test_snapshot_is_mounted_read_only_and_its_keys_only_where_needed() -> None:
    containers = _containers(jobs.source(RESTORE, SNAPSHOT, CLUSTER, "operator:1"))
    (claim,) = [each for each in containers["fetch"]["volumeMounts"] if each["name"] == "claim"]
    assert claim["readOnly"] is True
    assert "encryption" in _mounts(containers["fetch"])
    assert containers["check"]["volumeMounts"] == [
        {"name": "scratch", "mountPath": "/scratch/snapshot.db", "subPath": "snapshot.db", "readOnly": True}
    ]
    assert set(_mounts(containers["serve"])) == {"scratch", "transfer"}


def test_credentials_of_an_object_store_reach_the_fetching_container_only() -> None:
    remote = replace(SNAPSHOT, destination=Destination(s3=S3Store("bucket", credentials_secret="keys")))
    containers = _containers(jobs.source(RESTORE, remote, CLUSTER, "operator:1"))
    with_secrets = {name for name, each in containers.items() if any("valueFrom" in env for env in each["env"])}
    assert with_secrets == {"fetch"}
    assert _env(containers["fetch"])["SNAPSHOT_SRC"] == "s3://bucket/example/one.db"


def test_member_job_restores_under_a_token_of_this_restore() -> None:
    job = jobs.member(RESTORE, CLUSTER, 1, SOURCE)
    assert job["metadata"]["name"] == "back-member-1"
    prepare, restore = _containers(job).values()
    assert _env(prepare)["RESTORE_SRC"] == "https://10.0.0.9:8443/"
    peers = ",".join(f"example-{n}=https://example-{n}.example-peers.ns.svc:2380" for n in range(3))
    assert restore["command"][1:] == [
        "snapshot",
        "restore",
        "/scratch/snapshot.db",
        "--data-dir=/var/lib/etcd/data",
        "--name=example-1",
        f"--initial-cluster={peers}",
        "--initial-advertise-peer-urls=https://example-1.example-peers.ns.svc:2380",
        "--initial-cluster-token=12345678-9",
        "--bump-revision=1000000000",
        "--mark-compacted",
    ]
    volumes = {each["name"]: each for each in _spec(job)["volumes"]}
    assert volumes["claim"]["persistentVolumeClaim"]["claimName"] == "data-example-1"
    assert volumes["transfer"]["secret"]["secretName"] == "back-transfer-12345678"


def test_previous_data_is_moved_aside_in_place_and_overwritten_in_a_new_cluster() -> None:
    env = _env(_containers(jobs.member(RESTORE, CLUSTER, 0, SOURCE))["prepare"])
    assert (env["RESTORE_STATE"], env["RESTORE_OLD_DATA"]) == ("restored", "/var/lib/etcd/before-12345678")
    assert "RESTORE_OVERWRITE" not in env
    new = _env(_containers(jobs.member(replace(RESTORE, in_place=False), CLUSTER, 0, SOURCE))["prepare"])
    assert new["RESTORE_OVERWRITE"] == "true"
    assert "RESTORE_OLD_DATA" not in new


@pytest.mark.parametrize(("verb", "state"), [("putback", "put_back"), ("tidy", "kept")])
def test_previous_data_is_put_back_or_deleted_beside_its_member(verb: str, state: str) -> None:
    job = jobs.after(RESTORE, CLUSTER, verb, 2, "operator:1")
    assert job["metadata"]["name"] == f"back-{verb}-2"
    (work,) = _containers(job).values()
    assert _env(work)["RESTORE_STATE"] == state
    assert _env(work)["RESTORE_OLD_DATA"] == "/var/lib/etcd/before-12345678"
    (term,) = _spec(job)["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    selected = term["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert selected == {"statefulset.kubernetes.io/pod-name": "example-2"}


def test_member_jobs_are_spread_like_the_members() -> None:
    job = jobs.member(RESTORE, CLUSTER, 1, SOURCE)
    labels = job["spec"]["template"]["metadata"]["labels"]
    terms = _spec(job)["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    for term in terms:
        assert term["podAffinityTerm"]["labelSelector"]["matchLabels"].items() <= labels.items()
    own: Manifest = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    chosen = replace(CLUSTER, pod={"affinity": own})
    assert _spec(jobs.member(RESTORE, chosen, 1, SOURCE))["affinity"].keys() == {"podAntiAffinity", "nodeAffinity"}


def test_every_job_has_the_scheduling_settings_of_the_members_and_no_privileges() -> None:
    for job in _all():
        spec = _spec(job)
        assert {name: spec[name] for name in POD} == POD
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        for container in _containers(job).values():
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert job["metadata"]["ownerReferences"] == [jobs.owner(RESTORE)]


def test_no_job_has_the_label_that_selects_members() -> None:
    for job in _all():
        assert "etcdops.dev/cluster" not in job["spec"]["template"]["metadata"]["labels"]


def test_api_server_accepts_every_job(namespace: Namespace) -> None:
    for job in _all():
        created = namespace.create(job)
        assert created["spec"]["activeDeadlineSeconds"] > 0
