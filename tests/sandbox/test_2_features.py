"""Features of the sandbox that the operator and its tests need."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import dns.exception
import dns.resolver
import dns.reversename
import pytest

from sandbox import cluster, collect, layout, parts
from sandbox.errors import SandboxError
from sandbox.images.archive import write_archive
from sandbox.provisioner import volume_path

from .kube import Namespace, eventually

QUIET = {"command": ["/usr/local/bin/etcdctl", "watch", "nothing"]}  # keeps running; there is no shell


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": layout.etcd_image("3.6.16"), **QUIET, **spec.pop("container", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def _pvc(name: str, size: str = "64Mi", storage_class: str | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    if storage_class:
        spec["storageClassName"] = storage_class
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def _pod_with_pvc(name: str, claim: str) -> dict[str, Any]:
    return _pod(
        name,
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
    )


def _running(namespace: Namespace, pod: str) -> Any:
    return eventually(lambda: namespace.get("pod", pod)["status"].get("phase") == "Running")


def test_members_run_on_different_nodes_and_are_healthy(etcd: Namespace) -> None:
    pods = etcd.get("pods", "--selector=app=etcd")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-1", "node-2", "node-3"}
    health = etcd.kubectl("exec", "etcd-0", "--", "etcdctl", "endpoint", "health", "--cluster", "--write-out=json")
    assert [member["health"] for member in json.loads(health)] == [True, True, True]


def test_logs_are_available_from_every_node(etcd: Namespace) -> None:
    for number in range(3):
        assert "etcd-version" in etcd.kubectl("logs", f"etcd-{number}")


def test_pods_and_services_are_reachable_from_the_machine(etcd: Namespace) -> None:
    addresses = [pod["status"]["podIP"] for pod in etcd.get("pods", "--selector=app=etcd")["items"]]
    addresses.append(etcd.get("service", "etcd-client")["spec"]["clusterIP"])
    for address in addresses:
        with urllib.request.urlopen(f"http://{address}:2379/version", timeout=5) as answer:
            assert json.load(answer)["etcdserver"] == "3.6.16"


def test_service_is_reachable_from_pods_on_every_node(etcd: Namespace) -> None:
    endpoint = f"--endpoints=http://etcd-client.{etcd.name}.svc:2379"
    for number in range(3):
        answer = etcd.kubectl("exec", f"etcd-{number}", "--", "etcdctl", endpoint, "endpoint", "health")
        assert "is healthy" in answer


def test_port_forward_works(etcd: Namespace) -> None:
    kubectl = [str(parts.binary("kubernetes", "kubectl")), f"--kubeconfig={layout.kubeconfig()}"]
    command = [*kubectl, f"--namespace={etcd.name}", "port-forward", "pod/etcd-1", ":2379"]
    forward = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert forward.stdout
        port = forward.stdout.readline().split("->")[0].rpartition(":")[2].strip()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/version", timeout=10) as answer:
            assert json.load(answer)["etcdserver"] == "3.6.16"
    finally:
        forward.kill()
        forward.communicate()


@pytest.fixture
def resolver() -> dns.resolver.Resolver:
    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers = [str(layout.DNS_ADDRESS)]
    resolver.lifetime = 5
    return resolver


def test_cluster_dns_resolves_pods_and_nothing_outside(etcd: Namespace, resolver: dns.resolver.Resolver) -> None:
    domain = f"etcd.{etcd.name}.svc.{layout.CLUSTER_DOMAIN}"
    address = etcd.get("pod", "etcd-0")["status"]["podIP"]
    assert [str(record) for record in resolver.resolve(f"etcd-0.{domain}", "A")] == [address]
    with pytest.raises(dns.resolver.NoAnswer):  # the name exists, and has no IPv6 address
        resolver.resolve(f"etcd-0.{domain}", "AAAA")
    targets = {str(record.target) for record in resolver.resolve(f"_peer._tcp.{domain}", "SRV")}
    assert targets == {f"etcd-{number}.{domain}." for number in range(3)}
    names = {str(record) for record in resolver.resolve(dns.reversename.from_address(address), "PTR")}
    assert f"etcd-0.{domain}." in names
    with pytest.raises(dns.resolver.NXDOMAIN):
        resolver.resolve(f"missing.{domain}", "A")
    with pytest.raises(dns.resolver.NXDOMAIN):  # no query leaves the machine
        resolver.resolve("outside.example", "A")


def test_deleting_a_pvc_deletes_its_data(namespace: Namespace) -> None:
    namespace.apply(_pvc("freed"), _pod_with_pvc("uses-freed", "freed"))
    _running(namespace, "uses-freed")
    node = namespace.get("pod", "uses-freed")["spec"]["nodeName"]
    path = volume_path(node, namespace.get("pvc", "freed")["spec"]["volumeName"])
    (path / "some-data").write_text("x")
    namespace.kubectl("delete", "pod/uses-freed", "pvc/freed", "--wait=true")
    eventually(lambda: not path.exists(), timeout=20)


def test_pvc_is_expanded_where_its_class_allows_it(namespace: Namespace) -> None:
    namespace.apply(_pvc("grows"), _pod_with_pvc("uses-grows", "grows"))
    namespace.apply(_pvc("fixed", storage_class="standard-fixed"), _pod_with_pvc("uses-fixed", "fixed"))
    _running(namespace, "uses-grows")
    _running(namespace, "uses-fixed")
    larger = json.dumps({"spec": {"resources": {"requests": {"storage": "128Mi"}}}})
    namespace.kubectl("patch", "pvc/grows", f"--patch={larger}")
    eventually(lambda: namespace.get("pvc", "grows")["status"]["capacity"]["storage"] == "128Mi")
    with pytest.raises(SandboxError, match="only dynamically provisioned pvc can be resized"):
        namespace.kubectl("patch", "pvc/fixed", f"--patch={larger}")


def test_pod_security_is_enforced(namespace: Namespace) -> None:
    label = "pod-security.kubernetes.io/enforce"
    namespace.kubectl("label", f"namespace/{namespace.name}", f"{label}=restricted")
    try:
        with pytest.raises(SandboxError, match="violates PodSecurity"):
            namespace.apply(_pod("privileged", container={"securityContext": {"privileged": True}}))
    finally:
        namespace.kubectl("label", f"namespace/{namespace.name}", f"{label}-")


def test_network_policies_are_accepted(namespace: Namespace) -> None:
    namespace.apply(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "closed"},
            "spec": {"podSelector": {"matchLabels": {"app": "none"}}, "policyTypes": ["Ingress"]},
        }
    )
    assert namespace.get("networkpolicy", "closed")["spec"]["policyTypes"] == ["Ingress"]


def test_nodes_have_zones(namespace: Namespace) -> None:
    labels = [node["metadata"]["labels"] for node in namespace.get("nodes")["items"]]
    assert {label["topology.kubernetes.io/zone"] for label in labels} == {"zone-1", "zone-2", "zone-3"}


@pytest.mark.parametrize("version", layout.ETCD_VERSIONS)
def test_every_etcd_version_is_loaded(namespace: Namespace, version: str) -> None:
    name = f"etcd-{version.replace('.', '-')}"
    container = {"image": layout.etcd_image(version), "command": ["/usr/local/bin/etcdutl", "version"]}
    namespace.apply(_pod(name, restartPolicy="Never", container=container))
    eventually(lambda: namespace.get("pod", name)["status"].get("phase") == "Succeeded")
    assert f"etcdutl version: {version}" in namespace.kubectl("logs", name)


def test_image_archive_is_loaded(namespace: Namespace, tmp_path: Path) -> None:
    archive = tmp_path / "own.tar"
    with archive.open("wb") as target:
        programs = {"etcdutl": parts.etcd_binary("3.6.16", "etcdutl")}
        write_archive(target, "sandbox.local/own:1", programs, ["/etcdutl", "version"])
    before = cluster.existing()
    cluster.load_everywhere(archive)
    before.save()  # the archive is removed after this test
    container = {"image": "sandbox.local/own:1", "command": None}
    namespace.apply(_pod("own", restartPolicy="Never", container=container))
    eventually(lambda: namespace.get("pod", "own")["status"].get("phase") == "Succeeded")


def test_logs_events_and_objects_are_collected(etcd: Namespace, tmp_path: Path) -> None:
    collect.collect(tmp_path)
    assert "etcd-version" in (tmp_path / f"pod-{etcd.name}-etcd-0.log").read_text()
    assert (tmp_path / "hosts/control-plane/kube-apiserver.log").stat().st_size > 0
    assert (tmp_path / "hosts/node-3/kubelet.log").stat().st_size > 0
    assert "Scheduled" in (tmp_path / "events.txt").read_text()
    assert "etcd-2" in (tmp_path / "objects.txt").read_text()
