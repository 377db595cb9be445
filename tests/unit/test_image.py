"""Which files an image is made of, and when it must be made anew."""

import re
from pathlib import Path

import pytest

from image import recipe


def test_what_the_dockerfile_copies_is_let_into_the_build() -> None:
    lines = (recipe.REPOSITORY / "Dockerfile").read_text().splitlines()
    sources = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    allowed = {path.relative_to(recipe.REPOSITORY) for path in recipe.copied()}
    assert sources
    for source in sources:
        assert any(Path(source) in (path, *path.parents) for path in allowed), f"{source} is kept out by .dockerignore"


def test_tests_and_the_sandbox_stay_out() -> None:
    tops = {path.relative_to(recipe.REPOSITORY).parts[0] for path in recipe.copied()}
    assert tops.isdisjoint({"tests", "sandbox", "molecule", "deploy", ".git"})


def test_the_warm_runner_loads_what_the_operator_runs() -> None:
    playbooks = (recipe.REPOSITORY / "playbooks").glob("etcdcluster_*.yml")  # the others are for Jobs and people
    plays = [*(recipe.REPOSITORY / "roles").rglob("*.yml"), *playbooks]
    used = {name for play in plays for name in re.findall(r"^ *etcdops\.etcd\.(\w+):$", play.read_text(), re.MULTILINE)}
    dockerfile = (recipe.REPOSITORY / "Dockerfile").read_text()
    loaded = re.findall(r"ansible_collections\.etcdops\.etcd\.plugins\.modules\.(\w+)", dockerfile)
    assert sorted(used) == loaded


def test_what_needs_no_process_is_there() -> None:
    found = re.search(r"WARM_RUNNER_TRUSTED=(\S+)", (recipe.REPOSITORY / "Dockerfile").read_text())
    assert found
    names = found[1].split(",")
    modules = [name.removeprefix("etcdops.etcd.") for name in names if name.startswith("etcdops.etcd.")]
    assert modules
    for module in modules:
        assert (recipe.REPOSITORY / f"plugins/modules/{module}.py").exists(), module
    assert (recipe.REPOSITORY / "plugins/action/requeue_after.py").exists()
    assert "requeue_after" in names


def test_the_key_follows_content_mode_and_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "REPOSITORY", tmp_path)
    (tmp_path / ".dockerignore").write_text("*\n!role\n")
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "role").mkdir()
    task = tmp_path / "role" / "main.yml"
    task.write_text("one")
    keys = [recipe.image_key("base")]
    assert recipe.image_key("base") == keys[0]
    task.write_text("two")
    keys.append(recipe.image_key("base"))
    task.chmod(0o755)
    keys += [recipe.image_key("base"), recipe.image_key("another base")]
    assert len(set(keys)) == 4
    (tmp_path / "not-copied").write_text("three")
    assert recipe.image_key("base") == keys[2]
