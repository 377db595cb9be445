"""A real S3 server on 127.0.0.1, with TLS, for tests."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.s3 import S3, Settings

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
            S3(self.settings()).exists(BUCKET, "nothing")
        except Exception:
            return False
        return True

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
        """What the modules take."""
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

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
