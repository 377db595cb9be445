"""The keys and values of a cluster as one hash: python -m tests.e2e.checks.content NAMESPACE CLUSTER [REVISION].

At an earlier revision, it is what a snapshot of that revision must contain.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

from sandbox import cluster as sandbox
from sandbox import command


def content(namespace: str, cluster: str, revision: int = 0) -> dict[str, Any]:
    """The number of keys, and the hash of all keys and values."""
    command = ["etcdctl", "get", "", "--prefix", "--write-out=json", f"--rev={revision}", "--command-timeout=30s"]
    answer = json.loads(sandbox.kubectl("exec", f"--namespace={namespace}", f"{cluster}-0", "--", *command))
    return summary(answer.get("kvs", []))


def summary(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    lines = sorted(f"{pair['key']} {pair.get('value', '')}" for pair in pairs)
    return {"keys": len(lines), "sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest()}


def main() -> None:
    namespace, cluster, *revision = sys.argv[1:]
    print(json.dumps(content(namespace, cluster, int(revision[0]) if revision else 0)))


if __name__ == "__main__":
    command.run("content", main)
