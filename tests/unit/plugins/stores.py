"""A real S3 server on 127.0.0.1 for tests, with TLS or behind a proxy that injects faults."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots import object_store, s3
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.bucket import Bucket
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.s3 import Settings

from sandbox import parts

from .etcds import HOST, Certificates, eventually, free_ports

ACCESS_KEY, SECRET_KEY = "tester", "hush-hush-secret"
BUCKET = "backups"


@dataclass
class Store:
    """versitygw over a folder: a bucket is a folder in it, an object a file."""

    folder: Path
    port: int
    certificates: Certificates
    process: subprocess.Popen[bytes]
    secure: bool = True

    @classmethod
    def start(cls, folder: Path, certificates: Certificates, *, secure: bool = True) -> Store:
        (folder / "data" / BUCKET).mkdir(parents=True)
        (port,) = free_ports(1)
        command = [
            str(parts.binary("versitygw", "versitygw")),
            f"--port={HOST}:{port}",
            *([f"--cert={certificates.path('server.crt')}"] if secure else []),
            *([f"--key={certificates.path('server.key')}"] if secure else []),
            "--quiet",
            "posix",
            str(folder / "data"),
        ]
        environment = os.environ | {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        store = cls(folder, port, certificates, process, secure)
        eventually(store.answers)
        return store

    def answers(self) -> bool:
        try:
            object_store.exists(self.bucket(), "nothing")
        except Exception:
            return False
        return True

    def bucket(self, **changed: Any) -> Bucket:
        return s3.open_bucket(BUCKET, self.settings(**changed))

    def settings(self, **changed: Any) -> Settings:
        values: dict[str, Any] = {
            "endpoint": f"{'https' if self.secure else 'http'}://{HOST}:{self.port}",
            "path_style": True,
            "ca": self.certificates.path("ca.crt"),
            "access_key": ACCESS_KEY,
            "secret_key": SECRET_KEY,
        }
        return Settings(**(values | changed))

    @property
    def options(self) -> dict[str, Any]:
        """Options of the modules."""
        settings = self.settings()
        return {
            "s3_endpoint": settings.endpoint,
            "s3_path_style": True,
            "s3_ca_cert": settings.ca,
            "s3_access_key": ACCESS_KEY,
            "s3_secret_key": SECRET_KEY,
        }

    def path(self, key: str) -> Path:
        return self.folder / "data" / BUCKET / key

    def uploads(self) -> list[Path]:
        """Parts of uploads that were neither completed nor aborted."""
        hidden = self.folder / "data" / BUCKET / ".sgwtmp"
        return [path for path in hidden.rglob("*") if path.is_file()]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
