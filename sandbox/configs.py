"""Command lines and configuration files of the sandbox's programs, as pure values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from . import layout
from .layout import Host

# A dead node is detected within seconds; the defaults of Kubernetes are minutes.
_NODE_GRACE = "8s"
_TOLERATE_DEAD_NODE = "10"

# This file exists on a node when its images are loaded. A kubelet that starts earlier would try to pull them.
IMAGES_LOADED = "/run/images-loaded"


@dataclass(frozen=True)
class Program:
    """A program that a host keeps running."""

    name: str
    argv: tuple[str, ...]
    after: tuple[str, int] | None = None  # wait until this address and port answer
    after_file: str | None = None  # wait until this file exists


def etcd_config(host: Host) -> list[str]:
    return [
        f"--data-dir={host.dir}/etcd",
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--unsafe-no-fsync",  # the sandbox's own state may be lost with the sandbox
    ]


def control_plane_programs(host: Host, bin_of: dict[str, str], python: str) -> list[Program]:
    """`bin_of` maps a program's name to its path."""
    pki = layout.STATE / "pki"
    api = (str(host.address), layout.API_PORT)
    return [
        Program("etcd", (bin_of["etcd"], *etcd_config(host))),
        Program(
            "kube-apiserver",
            (
                bin_of["kube-apiserver"],
                "--etcd-servers=http://127.0.0.1:2379",
                f"--advertise-address={host.address}",
                f"--bind-address={host.address}",
                f"--secure-port={layout.API_PORT}",
                f"--service-cluster-ip-range={layout.SERVICE_NETWORK}",
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                "--allow-privileged=true",
                f"--client-ca-file={pki}/ca.crt",
                f"--tls-cert-file={pki}/apiserver.crt",
                f"--tls-private-key-file={pki}/apiserver.key",
                f"--kubelet-certificate-authority={pki}/ca.crt",
                f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt",
                f"--kubelet-client-key={pki}/apiserver-kubelet-client.key",
                "--kubelet-preferred-address-types=InternalIP",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={pki}/service-account.key",
                f"--service-account-signing-key-file={pki}/service-account.key",
                f"--audit-policy-file={host.dir}/audit-policy.json",
                f"--audit-log-path={host.logs}/audit.log",
                f"--default-not-ready-toleration-seconds={_TOLERATE_DEAD_NODE}",
                f"--default-unreachable-toleration-seconds={_TOLERATE_DEAD_NODE}",
            ),
            after=("127.0.0.1", 2379),
        ),
        Program(
            "kube-controller-manager",
            (
                bin_of["kube-controller-manager"],
                f"--kubeconfig={pki}/controller-manager.kubeconfig",
                "--use-service-account-credentials",
                f"--root-ca-file={pki}/ca.crt",
                f"--service-account-private-key-file={pki}/service-account.key",
                f"--cluster-signing-cert-file={pki}/ca.crt",
                f"--cluster-signing-key-file={pki}/ca.key",
                f"--node-monitor-grace-period={_NODE_GRACE}",
                "--node-monitor-period=1s",
                "--leader-elect=false",
            ),
            after=api,
        ),
        Program(
            "kube-scheduler",
            (bin_of["kube-scheduler"], f"--kubeconfig={pki}/scheduler.kubeconfig", "--leader-elect=false"),
            after=api,
        ),
        Program("coredns", (bin_of["coredns"], f"-conf={host.dir}/Corefile"), after=api),
        Program("provisioner", (python, "-m", "sandbox.provisioner"), after=api),
        # Makes Services reachable from the machine itself, independent of the nodes.
        Program("kube-proxy", (bin_of["kube-proxy"], f"--config={host.dir}/kube-proxy.json"), after=api),
    ]


def node_programs(host: Host, bin_of: dict[str, str]) -> list[Program]:
    api = (str(layout.control_plane().address), layout.API_PORT)
    return [
        Program("containerd", (bin_of["containerd"], f"--config={host.dir}/containerd.toml")),
        Program(
            "kubelet",
            (
                bin_of["kubelet"],
                f"--config={host.dir}/kubelet.json",
                f"--kubeconfig={host.dir}/kubelet.kubeconfig",
                f"--root-dir={host.dir}/kubelet",
                f"--hostname-override={host.name}",
                f"--node-ip={host.address}",
                f"--node-labels=topology.kubernetes.io/region=sandbox,topology.kubernetes.io/zone={host.zone}",
            ),
            after=api,
            after_file=IMAGES_LOADED,
        ),
        Program("kube-proxy", (bin_of["kube-proxy"], f"--config={host.dir}/kube-proxy.json"), after=api),
    ]


def audit_policy() -> dict[str, Any]:
    """Log the requests of service accounts, so that a test can compare them with the operator's permissions."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
            {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
            {"level": "None"},
        ],
    }


def kubelet_config(host: Host) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": str(host.address),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{layout.STATE}/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{host.dir}/kubelet.crt",
        "tlsPrivateKeyFile": f"{host.dir}/kubelet.key",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "clusterDNS": [str(layout.DNS_ADDRESS)],
        "clusterDomain": layout.CLUSTER_DOMAIN,
        "resolvConf": f"{host.dir}/resolv.conf",
        "podLogsDir": f"{host.dir}/pod-logs",
        "volumePluginDir": f"{host.dir}/volume-plugins",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.CGROUP}/{host.name}",
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,  # keep loaded images: there is no registry to pull them from
        "nodeLeaseDurationSeconds": 8,
        "nodeStatusUpdateFrequency": "2s",
        "nodeStatusReportFrequency": "60s",
        "syncFrequency": "10s",  # how soon the kubelet notices the new capacity of a volume
    }


def kube_proxy_config(host: Host) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": f"{layout.STATE}/pki/kube-proxy.kubeconfig"},
        # kube-proxy needs the name of a node, and the control plane is not one.
        "hostnameOverride": host.name if host.is_node else layout.node(1).name,
        "bindAddress": str(host.address),
        "mode": "iptables",
        "iptables": {"minSyncPeriod": "100ms"},
        "clusterCIDR": str(layout.POD_NETWORK),
        "conntrack": {"maxPerCore": 0},  # the only conntrack setting that affects the whole machine
    }


def cni_config(host: Host) -> dict[str, Any]:
    # ptp, not bridge: routed pods need no br_netfilter for Services on their own node.
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni",  # removed when the node is powered off, like the pods
                    "ranges": [[{"subnet": str(host.pods)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def containerd_config(host: Host) -> str:
    return f"""version = 2
root = "{host.dir}/containerd"
state = "/run/containerd/state"

[grpc]
address = "/run/containerd/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{layout.PAUSE_IMAGE}"
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{host.dir}/cni"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def corefile(host: Host) -> str:
    # Two blocks: in one block, `template` would come before `kubernetes` and answer its queries.
    return f"""{layout.CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {{
    bind {host.address}
    errors
    kubernetes {{
        kubeconfig {layout.kubeconfig()}
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }}
}}

. {{
    bind {host.address}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def cluster_objects(host: Host) -> dict[str, Any]:
    """Objects that every sandbox has: storage classes, rights of nodes, the Service of the control plane's CoreDNS."""
    dns_ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    dns = {"namespace": "kube-system", "name": "kube-dns"}
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            storage_class("standard", expandable=True, default=True),
            storage_class("standard-fixed", expandable=False),
            storage_class("floating", expandable=False, floats=True),
            _rights_of_nodes(),
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": dns,
                "spec": {"clusterIP": str(layout.DNS_ADDRESS), "ports": dns_ports},
            },
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": dns | {"labels": {"kubernetes.io/service-name": "kube-dns"}},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [str(host.address)], "conditions": {"ready": True}}],
                "ports": dns_ports,
            },
        ],
    }


def _rights_of_nodes() -> dict[str, Any]:
    """What the node authorizer grants each kubelet for its own pods, for all pods.

    A kubelet that is told of a pod may ask for its PVC before the authorizer knows of the pod. It is refused then, and
    asks again 10 to 15 seconds later: in one of twenty first starts on this machine.
    """
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "sandbox:nodes"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}],
    }


PROVISIONER = "sandbox.etcdops.dev/local"
FLOATING = "floating"  # a parameter of its StorageClasses: the volumes can be used on every node


def storage_class(name: str, *, expandable: bool, default: bool = False, floats: bool = False) -> dict[str, Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": PROVISIONER,
        "parameters": {FLOATING: str(floats).lower()},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": expandable,
    }


def dump(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1) + "\n"
