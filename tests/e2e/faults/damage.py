"""Make damaged copies of the snapshot on a PVC: python -m tests.e2e.faults.damage NAMESPACE CLAIM

damaged/cut.db is its first half, damaged/flipped.db has one bit flipped, damaged/junk.db is not a snapshot.
"""

from __future__ import annotations

import os
import sys

from sandbox import command

from ..fixtures.volumes import folder


def copies(content: bytes) -> dict[str, bytes]:
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    return {"cut": content[: len(content) // 2], "flipped": bytes(flipped), "junk": b"no snapshot " * 1000}


def main() -> None:
    claim = folder(*sys.argv[1:])
    good = next(path for path in claim.rglob("*.db") if path.parent.name != "damaged")
    owner = good.stat()
    (claim / "damaged").mkdir(exist_ok=True)
    for name, content in copies(good.read_bytes()).items():
        path = claim / "damaged" / f"{name}.db"
        path.write_bytes(content)
        os.chown(path, owner.st_uid, owner.st_gid)


if __name__ == "__main__":
    command.run("damage", main)
