"""The files of the operator's image, and the key that tells whether a built one is current."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from pathlib import Path

from .. import go, layout, parts

TAG = "etcdops.dev/etcdops:dev"
BASE_TAG = "localhost/ansible-operator:base"
LOCK = "requirements/runtime.txt"
RUNNER_MODULE = "github.com/operator-framework/ansible-operator-plugins"
DEBIAN_PACKAGES = ("ca-certificates", "libstdc++6", "python3", "tini", "usr-is-merged")

REPOSITORY = layout.REPOSITORY
_HERE = Path(__file__).parent
BASE_DOCKERFILE = _HERE / "base.Dockerfile"


def base_key(release: str) -> str:
    """The key of the base. It does not cover Debian's packages: delete the base from the cache to get newer ones."""
    files = [_HERE / "operator.py", _HERE / "recipe.py", BASE_DOCKERFILE, REPOSITORY / LOCK]
    return _digest([release, platform.machine(), parts.key(runner(), go.version()), *_contents(files)])


def image_key(base: str) -> str:
    """The key of the operator's image on that base."""
    files = [REPOSITORY / "Dockerfile", REPOSITORY / ".dockerignore", *copied()]
    return _digest([base, TAG, *_contents(files)])


def runner() -> parts.Part:
    """The part of the sandbox that builds ansible-operator."""
    return next(part for part in parts.PARTS if part.name == "ansible-operator")


def copied() -> list[Path]:
    """The files that .dockerignore includes in the build."""
    lines = (REPOSITORY / ".dockerignore").read_text().splitlines()
    roots = [REPOSITORY / line.removeprefix("!") for line in lines if line.startswith("!")]
    found = [path for root in roots for path in ([root] if root.is_file() else root.rglob("*"))]
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


def _contents(files: Iterable[Path]) -> list[str]:
    return [
        f"{path.relative_to(REPOSITORY)} {path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(files)
    ]


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
