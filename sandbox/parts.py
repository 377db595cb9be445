"""Build the programs of the sandbox from pinned Go modules, and keep them in the cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from . import layout
from .errors import SandboxError
from .run import run, say

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
    return _home(part, go_version()) / program


def etcd_binary(version: str, program: str = "etcd") -> Path:
    """The path of etcd, etcdctl or etcdutl of one of the sandbox's versions."""
    return binary(_etcd_name(version), program)


def go_version() -> str:
    """The installed Go version. SandboxError if it is missing or too old."""
    if shutil.which("go") is None:
        raise SandboxError(f"Go is not on PATH; install Go {needed_go()} or later and put it on PATH.")
    found = run(["go", "env", "GOVERSION"]).strip().removeprefix("go")
    if _as_tuple(found) < _as_tuple(needed_go()):
        raise SandboxError(f"Go {found} is too old; install Go {needed_go()} or later and put it first on PATH.")
    return found


def needed_go() -> str:
    """The newest `go` directive among the parts."""
    directives = [re.search(r"^go (\S+)$", _read(part, "go.mod"), re.MULTILINE) for part in PARTS]
    return max((found[1] for found in directives if found), key=_as_tuple)


def key(part: Part, go: str) -> str:
    """The cache key of a build: its sources, flags and Go version."""
    recipe = "\n".join([_read(part, "go.mod"), _read(part, "go.sum"), part.ldflags, str(part.renamed), go])
    return hashlib.sha256(recipe.encode()).hexdigest()[:16]


def _as_tuple(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _read(part: Part, name: str) -> str:
    return (part.source / name).read_text()


def _home(part: Part, go: str) -> Path:
    return layout.cache_dir() / "parts" / f"{part.name}-{key(part, go)}"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock, so that two builds of one thing wait for each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(part: Part, position: str = "1 of 1") -> None:
    """Build one part, if it is not in the cache."""
    home = _home(part, go_version())
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
    environment = os.environ | {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    command = ["go", "build", "-trimpath", f"-ldflags={part.ldflags}", "-o", f"{target}/", "tool"]
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
            raise SandboxError(f"building {part.name} failed: {errors.read().strip()[-800:]}")
