"""Where a claim's data is on this machine: the sandbox's volumes are folders of its nodes."""

from __future__ import annotations

import json
from pathlib import Path

from sandbox import cluster as sandbox
from sandbox import layout


def folder(namespace: str, claim: str) -> Path:
    name = json.loads(sandbox.kubectl("get", "pvc", claim, f"--namespace={namespace}", "--output=json"))["spec"][
        "volumeName"
    ]
    (found,) = (layout.STATE / "hosts").glob(f"*/volumes/{name}")
    return found
