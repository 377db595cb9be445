"""Write a docker-archive: one layer, a config and a manifest."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
import tempfile
from pathlib import Path
from typing import IO

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def cached(archive: Path, tag: str, files: dict[str, Path], entrypoint: list[str]) -> Path:
    """The archive, written if it does not exist yet."""
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=archive.parent, prefix=".", delete=False) as scratch:
            write_archive(scratch, tag, files, entrypoint)
        Path(scratch.name).chmod(0o644)
        Path(scratch.name).rename(archive)  # complete or not at all
    return archive


def write_archive(target: IO[bytes], tag: str, files: dict[str, Path], entrypoint: list[str]) -> None:
    """Write a docker-archive of one layer with `files` (path in the image: path on this machine)."""
    layer = _layer(files)
    config = json.dumps(
        {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Entrypoint": entrypoint, "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }
    ).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, data in (("layer.tar", layer), ("config.json", config), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def _layer(files: dict[str, Path]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder in sorted({str(parent) for name in files for parent in Path(name).parents} - {"."}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            layer.addfile(entry)
        for name, path in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = path.stat().st_size, 0o755
            with path.open("rb") as content:
                layer.addfile(entry, content)
    return buffer.getvalue()
