"""Fill a cluster's database: python -m tests.e2e.traffic.fill NAMESPACE CLUSTER MIB"""

from __future__ import annotations

import sys

from sandbox import cluster as sandbox
from sandbox import command

_MIB = 1 << 20


def main() -> None:
    namespace, cluster, size = sys.argv[1:]
    for number in range(int(size)):
        put = ("etcdctl", "put", f"ballast-{number}", "--command-timeout=30s")
        sandbox.kubectl(
            "exec", "--stdin", f"--namespace={namespace}", f"{cluster}-0", "--", *put, stdin=f"{number % 10}" * _MIB
        )


if __name__ == "__main__":
    command.run("fill", main)
