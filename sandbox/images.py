"""Build container images without a container engine: a docker-archive is a layer, a config and a manifest."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
import tempfile
from pathlib import Path
from typing import IO

from . import layout, parts
from .run import run

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def default_archives() -> list[Path]:
    """The images on every node: pause, an S3 server, and etcd with the layout of the official image."""
    return [_pause(), _s3(), *(_etcd(version) for version in layout.ETCD_VERSIONS)]


def _etcd(version: str) -> Path:
    files = {
        f"usr/local/bin/{program}": parts.etcd_binary(version, program) for program in ("etcd", "etcdctl", "etcdutl")
    }
    entrypoint = ["/usr/local/bin/etcd"]
    archive = _home() / f"etcd-{version}-{files['usr/local/bin/etcd'].parent.name}.tar"
    return _cached(archive, layout.etcd_image(version), files, entrypoint)


def _s3() -> Path:
    program = parts.binary("versitygw", "versitygw")
    archive = _home() / f"{program.parent.name}.tar"
    return _cached(archive, layout.S3_IMAGE, {"versitygw": program}, ["/versitygw"])


def _pause() -> Path:
    archive = _home() / f"pause-{layout.KUBERNETES_VERSION}.tar"
    if archive.exists():
        return archive
    # The module of the API server also contains the source of pause.
    module = json.loads(
        run(["go", "mod", "download", "-C", parts.PARTS[0].source, "-json", "k8s.io/kubernetes"], timeout=600)
    )
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "pause"
        source = Path(module["Dir"]) / "build/pause/linux/pause.c"
        run(["gcc", "-Os", "-static", "-DVERSION=sandbox", "-o", program, source])
        return _cached(archive, layout.PAUSE_IMAGE, {"pause": program}, ["/pause"])


def _home() -> Path:
    return layout.cache_dir() / "images"


def _cached(archive: Path, tag: str, files: dict[str, Path], entrypoint: list[str]) -> Path:
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=archive.parent, prefix=".", delete=False) as scratch:
            write_archive(scratch, tag, files, entrypoint)
        Path(scratch.name).chmod(0o644)
        Path(scratch.name).rename(archive)  # atomic: complete or not at all
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
