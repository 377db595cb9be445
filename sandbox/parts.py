"""The programs that the sandbox consists of, built from pinned Go modules and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import go, layout
from .errors import SandboxError
from .run import locked, say

_SOURCES = Path(__file__).parent / "parts"
_REPORT_EVERY = 20.0  # seconds between two lines of progress while the compiler works


@dataclass(frozen=True)
class Part:
    """One go.mod with `tool` directives."""

    name: str
    variables: dict[str, str] = field(default_factory=dict)  # set by the linker
    renamed: dict[str, str] = field(default_factory=dict)  # built name: usual name

    @property
    def source(self) -> Path:
        return _SOURCES / self.name

    @property
    def ldflags(self) -> str:
        return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in self.variables.items())])


def _kubernetes() -> Part:
    major, minor, _ = layout.KUBERNETES_VERSION.removeprefix("v").split(".")
    prefix = "k8s.io/component-base/version."
    return Part(
        "kubernetes",
        variables={
            f"{prefix}gitVersion": layout.KUBERNETES_VERSION,
            f"{prefix}gitMajor": major,
            f"{prefix}gitMinor": minor,
        },
    )


def _etcd_name(version: str) -> str:
    return "etcd-" + ".".join(version.split(".")[:2])


PARTS = (
    _kubernetes(),
    Part("ansible-operator"),
    Part("coredns"),
    Part("versitygw"),  # an S3 server, for the scenarios about backups
    *(Part(_etcd_name(version), renamed={"server": "etcd"}) for version in layout.ETCD_VERSIONS),
)


def build_all() -> None:
    """Build what is not in the cache."""
    for number, part in enumerate(PARTS, 1):
        build(part, f"{number} of {len(PARTS)}")


def binary(part_name: str, program: str) -> Path:
    """The path of a built program."""
    part = next(part for part in PARTS if part.name == part_name)
    return _home(part) / program


def etcd_binary(version: str, program: str = "etcd") -> Path:
    """The path of etcd, etcdctl or etcdutl of one of the sandbox's versions."""
    return binary(_etcd_name(version), program)


def key(part: Part, go_version: str) -> str:
    """What decides whether a build can be used again."""
    recipe = "\n".join([_read(part, "go.mod"), _read(part, "go.sum"), part.ldflags, str(part.renamed), go_version])
    return hashlib.sha256(recipe.encode()).hexdigest()[:16]


def _read(part: Part, name: str) -> str:
    return (part.source / name).read_text()


def _home(part: Part) -> Path:
    return layout.cache_dir() / "parts" / f"{part.name}-{key(part, go.version())}"


def build(part: Part, position: str = "1 of 1") -> None:
    """Build one part, if the cache lacks it."""
    home = _home(part)
    if home.is_dir():
        return
    with locked(home.parent / f"{part.name}.lock"):
        if home.is_dir():  # built by another process in the meantime
            return
        for leftover in home.parent.glob(f".{part.name}-*"):  # of an interrupted build
            shutil.rmtree(leftover)
        scratch = Path(tempfile.mkdtemp(prefix=f".{part.name}-", dir=home.parent))
        _compile(part, scratch, position)
        for built, known in part.renamed.items():
            (scratch / built).rename(scratch / known)
        scratch.chmod(0o755)
        scratch.rename(home)


def _compile(part: Part, target: Path, position: str) -> None:
    say(f"building {part.name} ({position})")
    started = time.monotonic()
    own = {name: value for name, value in os.environ.items() if name != "GOROOT"}  # it may be that of another Go
    environment = own | {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    command = [str(go.program()), "build", "-trimpath", f"-ldflags={part.ldflags}", "-o", f"{target}/", "tool"]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, cwd=part.source, env=environment, stderr=errors)
        while True:
            try:
                process.wait(_REPORT_EVERY)
                break
            except subprocess.TimeoutExpired:
                say(f"building {part.name} ({position}), {time.monotonic() - started:.0f} s so far")
            except BaseException:
                process.kill()
                raise
        if process.returncode != 0:
            errors.seek(0)
            words = errors.read().strip()[-800:] or "go said nothing; was it killed?"
            raise SandboxError(f"building {part.name} failed ({process.returncode}): {words}")
