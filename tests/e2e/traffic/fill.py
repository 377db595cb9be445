"""Fill a cluster's database: python -m tests.e2e.traffic.fill NAMESPACE CLUSTER MIB"""

from __future__ import annotations

import sys

from sandbox import cluster as sandbox
from sandbox import command

_MIB = 1 << 20


def fill(namespace: str, cluster: str, mib: int) -> None:
    for number in range(mib):
        put = ("etcdctl", "put", f"ballast-{number}", "--command-timeout=30s")
        sandbox.kubectl(
            "exec", "--stdin", f"--namespace={namespace}", f"{cluster}-0", "--", *put, stdin=f"{number % 10}" * _MIB
        )


def main() -> None:
    namespace, cluster, size = sys.argv[1:]
    fill(namespace, cluster, int(size))


if __name__ == "__main__":
    command.run("fill", main)
