"""An S3 server for a scenario, with TLS: python -m proof.s3 NAMESPACE prints its manifests.

The bucket `backups` is a volume of the pod. What is in it: python -m proof.s3 NAMESPACE list.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

from sandbox import cluster as sandbox
from sandbox import layout, pki

ACCESS_KEY, SECRET_KEY = "scenario", "hush-hush-scenario"
_USER = 65532
_PORT = 7070


def manifests(namespace: str) -> list[dict[str, Any]]:
    ca = pki.make_ca("s3-ca")  # not the name of the server: that would look self-signed
    names = ("s3", f"s3.{namespace}", f"s3.{namespace}.svc")
    server = pki.make_leaf(ca, "s3", names=names)
    return [
        _secret(namespace, "s3-server", {"tls.crt": server.certificate_pem, "tls.key": server.key_pem}),
        _secret(namespace, "s3-ca", {"ca.crt": ca.certificate_pem}),
        _secret(namespace, "s3-credentials", {"accessKeyID": ACCESS_KEY, "secretAccessKey": SECRET_KEY}),
        _secret(namespace, "s3-wrong", {"accessKeyID": ACCESS_KEY, "secretAccessKey": "something else"}),
        _service(namespace),
        _pod(namespace),
    ]


def _secret(namespace: str, name: str, data: dict[str, bytes | str]) -> dict[str, Any]:
    encoded = {
        key: base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()
        for key, value in data.items()
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name}, "data": encoded}


def _service(namespace: str) -> dict[str, Any]:
    spec = {"selector": {"app": "s3"}, "ports": [{"port": 443, "targetPort": _PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": namespace, "name": "s3"}, "spec": spec}


def _pod(namespace: str) -> dict[str, Any]:
    def key(name: str) -> dict[str, Any]:
        return {"valueFrom": {"secretKeyRef": {"name": "s3-credentials", "key": name}}}

    container = {
        "name": "s3",
        "image": layout.S3_IMAGE,
        "args": [f"--port=:{_PORT}", "--cert=/tls/tls.crt", "--key=/tls/tls.key", "--quiet", "posix", "/data"],
        "env": [
            {"name": "ROOT_ACCESS_KEY", **key("accessKeyID")},
            {"name": "ROOT_SECRET_KEY", **key("secretAccessKey")},
        ],
        "readinessProbe": {"tcpSocket": {"port": _PORT}, "periodSeconds": 1},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},  # for its own notes
            {"name": "bucket", "mountPath": "/data/backups"},
            {"name": "tls", "mountPath": "/tls"},
        ],
    }
    spec = {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "data", "emptyDir": {}},
            {"name": "bucket", "emptyDir": {}},
            {"name": "tls", "secret": {"secretName": "s3-server"}},
        ],
    }
    meta = {"namespace": namespace, "name": "s3", "labels": {"app": "s3"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def stored(namespace: str) -> list[str]:
    """The keys of the objects in the bucket, and of what is no object yet: read where the node keeps the volume."""
    pod = json.loads(sandbox.kubectl("get", "pod", "s3", f"--namespace={namespace}", "--output=json"))
    volume = f"kubelet/pods/{pod['metadata']['uid']}/volumes/kubernetes.io~empty-dir/bucket"
    bucket = layout.STATE / "hosts" / pod["spec"]["nodeName"] / volume
    return sorted(str(path.relative_to(bucket)) for path in bucket.rglob("*") if path.is_file())


def main() -> None:
    namespace = sys.argv[1]
    print(json.dumps(stored(namespace) if sys.argv[2:] == ["list"] else manifests(namespace)))


if __name__ == "__main__":
    main()
