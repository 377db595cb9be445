from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from sandbox.images import archive as docker_archive


def test_archive_contains_the_files_and_the_digest_of_its_layer(tmp_path: Path) -> None:
    program = tmp_path / "etcd"
    program.write_bytes(b"a program")
    buffer = io.BytesIO()
    docker_archive.write_archive(buffer, "some/etcd:v1", {"usr/local/bin/etcd": program}, ["/usr/local/bin/etcd"])
    buffer.seek(0)
    with tarfile.open(fileobj=buffer) as archive:
        read = {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]
    manifest = json.loads(read["manifest.json"])[0]
    config = json.loads(read[manifest["Config"]])
    layer = read[manifest["Layers"][0]]
    assert manifest["RepoTags"] == ["some/etcd:v1"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert config["config"]["Entrypoint"] == ["/usr/local/bin/etcd"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        assert tar.getnames() == ["usr", "usr/local", "usr/local/bin", "usr/local/bin/etcd"]
        assert tar.getmember("usr/local/bin/etcd").mode == 0o755
