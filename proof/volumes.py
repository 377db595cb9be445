"""Where a claim's data is on this machine: the sandbox's volumes are folders of its nodes. And claims made by hand.

python -m proof.volumes NAMESPACE CLAIM prints what is on a claim: files, and whatever else is no folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from sandbox import cluster as sandbox
from sandbox import layout

NODE = "node-1"


def folder(namespace: str, claim: str) -> Path:
    name = json.loads(sandbox.kubectl("get", "pvc", claim, f"--namespace={namespace}", "--output=json"))["spec"][
        "volumeName"
    ]
    (found,) = (layout.STATE / "hosts").glob(f"*/volumes/{name}")
    return found


def by_hand(namespace: str, claim: str) -> Path:
    """The folder on NODE of a claim that `make` makes: whoever needs it otherwise than empty sees to that before."""
    return layout.STATE / "hosts" / NODE / "volumes" / f"{namespace}-{claim}"


def make(namespace: str, claim: str) -> None:
    """A claim on that folder."""
    volume, wanted = manifests(namespace, claim)
    # One of an earlier run is bound to a claim that is gone.
    sandbox.kubectl("delete", "pv", volume["metadata"]["name"], "--ignore-not-found")
    for manifest in (volume, wanted):
        sandbox.kubectl("apply", "--filename=-", stdin=json.dumps(manifest))


def manifests(namespace: str, claim: str) -> tuple[dict[str, Any], dict[str, Any]]:
    path = by_hand(namespace, claim)
    on_node = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}
    both = {"accessModes": ["ReadWriteOnce"], "storageClassName": "by-hand"}
    volume_spec = {
        **both,
        "capacity": {"storage": "1Gi"},
        "local": {"path": str(path)},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [on_node]}},
        "claimRef": {"namespace": namespace, "name": claim},
    }
    claim_spec = {**both, "volumeName": path.name, "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"kind": "PersistentVolume", "metadata": {"name": path.name}, "spec": volume_spec}
    meta = {"namespace": namespace, "name": claim}
    wanted = {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim_spec}
    return {"apiVersion": "v1", **volume}, {"apiVersion": "v1", **wanted}


def main() -> None:
    top = folder(*sys.argv[1:])
    print(json.dumps(sorted(str(path.relative_to(top)) for path in top.rglob("*") if not path.is_dir())))


if __name__ == "__main__":
    main()
