"""A PVC without free space: python -m tests.e2e.faults.full NAMESPACE NAME, or … list: its files.

A folder of a node has no limit, so the volume is a small tmpfs with ballast.
"""

from __future__ import annotations

import json
import sys

from sandbox import command, host

from ..fixtures import volumes

_SIZE = 64 * 1024


def make(namespace: str, name: str) -> None:
    path = volumes.folder_for(namespace, name)
    host.inside(volumes.NODE, "mkdir", "--parents", path)
    host.inside(volumes.NODE, "mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "full", path)
    host.inside(volumes.NODE, "chmod", "0777", path)
    host.inside(volumes.NODE, "dd", "if=/dev/zero", f"of={path}/ballast", f"bs={_SIZE - 16384}", "count=1")
    volumes.make(namespace, name)


def stored(namespace: str, name: str) -> list[str]:
    path = volumes.folder_for(namespace, name)
    return sorted(host.inside(volumes.NODE, "find", path, "-type", "f", "-printf", "%P\\n").split())


def main() -> None:
    match sys.argv[1:]:
        case [namespace, name, "list"]:
            print(json.dumps(stored(namespace, name)))
        case [namespace, name]:
            make(namespace, name)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    command.run("full", main)
