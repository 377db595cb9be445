"""The operator's image: a base like the official one from Debian, PyPI and ansible-operator, then our Dockerfile."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import checks, go, layout, parts
from ..errors import SandboxError
from ..run import locked, run, say
from . import recipe

_TOOLS = ("buildah", "mmdebstrap")  # Debian packages, and programs of the same name
_OWN_MOUNTS = ("unshare", "--mount")  # mounts end with the program, even when it is killed
_KEEP = 3  # bases, and images, in the cache
_NOT_NEEDED = ("doc", "info", "locale", "man")  # of /usr/share

# ansible-runner finds ansible-operator's plugin by this entry of an installed package.
_EVENTS_PACKAGE = "ansible_operator_http_events-1.0.0.dist-info"
_EVENTS_METADATA = {
    "METADATA": "Metadata-Version: 2.1\nName: ansible-operator-http-events\nVersion: 1.0.0\nLicense: Apache-2.0\n",
    "entry_points.txt": "[ansible_runner.plugins]\nhttp = ansible_runner_http\n",
}


def archive() -> Path:
    """The operator's image as a docker-archive, built if its files have changed."""
    release = _release()
    base_key = recipe.base_key(release)
    with locked(_home() / "etcdops.lock"):
        while True:
            key = recipe.image_key(base_key)
            found = _home() / f"etcdops-{key}.tar"
            if found.exists():
                break
            _build_image(found, base_key, release)
            if recipe.image_key(base_key) != key:
                say("files changed meanwhile: building again")
                found.unlink()
        found.touch()
        _remove_old("etcdops-*.tar")
    return found


def _build_image(target: Path, base_key: str, release: str) -> None:
    _need_root()
    _need_files()
    checks.install([name for name in _TOOLS if shutil.which(name) is None])
    store = _base(base_key, release)
    say(f"building {recipe.TAG}")
    with _scratch("etcdops") as folder:
        _build(store, folder, recipe.TAG, f"--build-arg=BASE={recipe.BASE_TAG}", recipe.REPOSITORY)
        made = folder / target.name
        _buildah(store, folder, "push", "--quiet", recipe.TAG, f"docker-archive:{made}:{recipe.TAG}")
        _buildah(store, folder, "rmi", recipe.TAG)
        made.rename(target)  # complete or not at all
    _remove_old("base-*")


def _base(key: str, release: str) -> Path:
    """The buildah store with the base."""
    store = _home() / f"base-{key}"
    if not store.exists():
        with _scratch("base") as folder:
            say(f"building the base: Debian {release}")
            context = folder / "context"
            context.mkdir()
            _debian(release, context / "rootfs.tar")
            python = _python_of(context / "rootfs.tar")
            say(f"building the base: packages for Python {python}")
            _wheels(python, context / "wheels")
            _runner(python, context / "extra")
            shutil.copy(recipe.BASE_DOCKERFILE, context / "Dockerfile")
            _build(folder / "store", folder, recipe.BASE_TAG, context)
            (folder / "store").rename(store)
    store.touch()
    return store


def _debian(release: str, target: Path) -> None:
    """A small Debian from the apt sources of this machine."""
    sources = _debian_sources()
    if not sources:
        run(["apt-get", "update", "-q"], timeout=300)
        sources = _debian_sources()
    excludes = [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in _NOT_NEEDED]
    run(
        [
            *_OWN_MOUNTS,
            "env",
            f"TMPDIR={target.parent}",
            "mmdebstrap",
            "--quiet",
            "--variant=essential",
            f"--include={','.join(recipe.DEBIAN_PACKAGES)}",
            "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
            '--aptopt=Acquire::Languages "none"',
            '--aptopt=APT::Sandbox::User "root"',  # the folder belongs to root
            *excludes,
            "--dpkgopt=path-include=/usr/share/doc/*/copyright",
            # No settings of this machine; and pip may install, as in the official image.
            '--customize-hook=rm -rf "$1"/etc/apt/sources.list* "$1"/var/cache/* "$1"/var/log/*',
            '--customize-hook=rm -f "$1"/etc/resolv.conf "$1"/etc/hostname "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',
            release,
            target,
            "-",
        ],
        stdin=sources,
        timeout=900,
    )


def _debian_sources() -> str:
    line = "deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    return run(["apt-get", "indextargets", "--format", line, "Created-By: Packages", "Origin: Debian"])


def _python_of(rootfs: Path) -> str:
    """The version of its Python, such as 3.11."""
    with tarfile.open(rootfs) as tar:
        return tar.getmember("./usr/bin/python3").linkname.removeprefix("python")


def _wheels(python: str, target: Path) -> None:
    lock = recipe.REPOSITORY / recipe.LOCK
    options = ["--quiet", "--require-hashes", "--no-deps", "--only-binary=:all:", f"--python-version={python}"]
    run([sys.executable, "-m", "pip", "download", *options, f"--dest={target}", f"--requirement={lock}"], timeout=900)
    shutil.copy(lock, target)


def _runner(python: str, target: Path) -> None:
    """ansible-operator, its ansible-runner plugin and Ansible settings, at the paths of the official image."""
    parts.build(recipe.runner())
    install_events_plugin(target / f"usr/local/lib/python{python}/dist-packages")
    (target / "usr/local/bin").mkdir()
    shutil.copy(parts.binary("ansible-operator", "ansible-operator"), target / "usr/local/bin")
    (target / "etc/ansible").mkdir(parents=True)
    (target / "etc/ansible/hosts").write_text("localhost ansible_connection=local\n")
    (target / "etc/ansible/ansible.cfg").write_text("[defaults]\nroles_path = /opt/ansible/roles\n")
    for path in target.rglob("*"):  # the module cache is read-only
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)


def install_events_plugin(packages: Path) -> None:
    """ansible-operator's plugin for ansible-runner, which sends it the events of a run, into a folder of packages."""
    found = go.download(recipe.runner().source, recipe.RUNNER_MODULE)
    module = Path(json.loads(found)["Dir"])
    plugin = "ansible_runner_http"
    shutil.copytree(module / "images/ansible-operator" / plugin / plugin, packages / plugin)
    (packages / _EVENTS_PACKAGE).mkdir()
    for name, text in _EVENTS_METADATA.items():
        (packages / _EVENTS_PACKAGE / name).write_text(text)
    shutil.copy(module / "LICENSE", packages / _EVENTS_PACKAGE)


def _build(store: Path, folder: Path, tag: str, *arguments: str | Path) -> None:
    """Build a Dockerfile into a store."""
    _buildah(store, folder, "rm", "--all")  # of a killed build
    _buildah(store, folder, "bud", "--isolation=chroot", "--quiet", f"--tag={tag}", *arguments)


def _buildah(store: Path, folder: Path, command: str, *arguments: str | Path) -> None:
    policy = folder / "policy.json"
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')  # images of this machine only
    options: list[str | Path] = [f"--root={store}", f"--runroot={folder / 'run'}", f"--storage-driver={_driver()}"]
    signed = [f"--signature-policy={policy}"] if command in ("bud", "push") else []
    run([*_OWN_MOUNTS, "buildah", *options, command, *signed, *arguments], timeout=900)


def _driver() -> str:
    """overlay is faster, but does not work on an overlay."""
    found = run(["stat", "--file-system", "--format=%T", _home()]).strip()
    return "vfs" if found == "overlayfs" else "overlay"


@contextmanager
def _scratch(name: str) -> Iterator[Path]:
    for leftover in _home().glob(f".{name}-*"):  # of a killed build
        shutil.rmtree(leftover)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=_home()) as folder:
        yield Path(folder)


def _remove_old(pattern: str) -> None:
    by_age = sorted(_home().glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_age[_KEEP:]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _home() -> Path:
    return layout.cache_dir() / "images"


def _release() -> str:
    """This machine's Debian release, used for the base too."""
    lines = Path("/etc/os-release").read_text().splitlines()
    values = dict(line.replace('"', "").split("=", 1) for line in lines if "=" in line)
    if values.get("ID") != "debian" or "VERSION_CODENAME" not in values:
        raise SandboxError(
            "The base of the image is built with Debian's tools, and this machine is not Debian. "
            "With a container engine: docker build --tag etcdops.dev/etcdops:dev ."
        )
    return values["VERSION_CODENAME"]


def _need_root() -> None:
    if os.geteuid() != 0:
        raise SandboxError("The image is built in a chroot, which needs root (try sudo).")


def _need_files() -> None:
    for line in (recipe.REPOSITORY / ".dockerignore").read_text().splitlines():
        if line.startswith("!") and not (recipe.REPOSITORY / line[1:]).exists():
            raise SandboxError(f"{line[1:]} does not exist, but the image contains it (see .dockerignore).")
