"""The images that every node starts with: pause, an S3 server, and etcd laid out like the official image."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from .. import go, layout, parts
from ..run import run
from .archive import cached


def archives() -> list[Path]:
    return [_pause(), _s3(), *(_etcd(version) for version in layout.ETCD_VERSIONS)]


def _etcd(version: str) -> Path:
    files = {
        f"usr/local/bin/{program}": parts.etcd_binary(version, program) for program in ("etcd", "etcdctl", "etcdutl")
    }
    entrypoint = ["/usr/local/bin/etcd"]
    archive = _home() / f"etcd-{version}-{files['usr/local/bin/etcd'].parent.name}.tar"
    return cached(archive, layout.etcd_image(version), files, entrypoint)


def _s3() -> Path:
    program = parts.binary("versitygw", "versitygw")
    archive = _home() / f"{program.parent.name}.tar"
    return cached(archive, layout.S3_IMAGE, {"versitygw": program}, ["/versitygw"])


def _pause() -> Path:
    archive = _home() / f"pause-{layout.KUBERNETES_VERSION}.tar"
    if archive.exists():
        return archive
    # The Kubernetes module contains the source of pause.
    module = json.loads(go.download(parts.PARTS[0].source, "k8s.io/kubernetes"))
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "pause"
        source = Path(module["Dir"]) / "build/pause/linux/pause.c"
        run(["gcc", "-Os", "-static", "-DVERSION=sandbox", "-o", program, source])
        return cached(archive, layout.PAUSE_IMAGE, {"pause": program}, ["/pause"])


def _home() -> Path:
    return layout.cache_dir() / "images"
