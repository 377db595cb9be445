"""Put a zstd bomb on a PVC: python -m tests.e2e.faults.bomb NAMESPACE CLAIM

bomb.db.zst has 3 MiB and decompresses to 100 GiB that begin like an etcd database.
"""

from __future__ import annotations

import struct
import sys

from sandbox import command

from ..fixtures.volumes import folder

_BLOCK = 1 << 17  # the largest that zstd allows
_SIZE = 100 << 30
_RAW, _REPEATED = 0, 1
_WINDOW = (17 - 10) << 3  # 2 ** 17 bytes
_DATABASE = bytes(16) + struct.pack("<II", 0xED0CDAED, 2) + bytes(40)


def content() -> bytes:
    header = struct.pack("<IBB", 0xFD2FB528, 0, _WINDOW)
    zeros = _block(_BLOCK, _REPEATED) + b"\0"
    return header + _block(len(_DATABASE), _RAW) + _DATABASE + zeros * (_SIZE // _BLOCK) + _block(0, _RAW, last=1)


def _block(size: int, kind: int, last: int = 0) -> bytes:
    return struct.pack("<I", size << 3 | kind << 1 | last)[:3]


def main() -> None:
    claim = folder(*sys.argv[1:])
    path = claim / "bomb.db.zst"
    path.write_bytes(content())
    path.chmod(0o644)


if __name__ == "__main__":
    command.run("bomb", main)
