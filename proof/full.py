"""A claim that has no room left: python -m proof.full NAMESPACE NAME, or … list what is on it.

A folder of a node would take what comes, so the volume is a small file system in its memory with ballast.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from sandbox import cluster as sandbox
from sandbox import host, layout

_NODE = "node-1"
_SIZE = 64 * 1024


def make(namespace: str, name: str) -> None:
    path = _path(namespace, name)
    host.inside(_NODE, "mkdir", "--parents", path)
    host.inside(_NODE, "mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "full", path)
    host.inside(_NODE, "chmod", "0777", path)
    host.inside(_NODE, "dd", "if=/dev/zero", f"of={path}/ballast", f"bs={_SIZE - 16384}", "count=1")
    for manifest in manifests(namespace, name, path):
        sandbox.kubectl("apply", "--filename=-", stdin=json.dumps(manifest))


def manifests(namespace: str, name: str, path: str) -> list[dict[str, Any]]:
    volume = f"{namespace}-{name}"
    room = {"storage": "64Ki"}
    on_node = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [_NODE]}]}
    spec = {
        "capacity": room,
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "full",
        "local": {"path": path},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [on_node]}},
        "claimRef": {"namespace": namespace, "name": name},
    }
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "full",
        "volumeName": volume,
        "resources": {"requests": room},
    }
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": namespace, "name": name},
            "spec": claim,
        },
    ]


def stored(namespace: str, name: str) -> list[str]:
    path = _path(namespace, name)
    return sorted(host.inside(_NODE, "find", path, "-type", "f", "-printf", "%P\\n").split())


def _path(namespace: str, name: str) -> str:
    return str(layout.STATE / "hosts" / _NODE / "volumes" / f"{namespace}-{name}")


def main() -> None:
    match sys.argv[1:]:
        case [namespace, name, "list"]:
            print(json.dumps(stored(namespace, name)))
        case [namespace, name]:
            make(namespace, name)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
