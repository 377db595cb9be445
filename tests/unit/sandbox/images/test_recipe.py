"""Which files the operator's image contains, and when it must be built again."""

import re
from pathlib import Path

import pytest

from sandbox.images import recipe


def test_dockerignore_admits_what_the_dockerfile_copies() -> None:
    lines = (recipe.REPOSITORY / "Dockerfile").read_text().splitlines()
    sources = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    allowed = {path.relative_to(recipe.REPOSITORY) for path in recipe.copied()}
    assert sources
    for source in sources:
        assert any(Path(source) in (path, *path.parents) for path in allowed), f"{source} is kept out by .dockerignore"


def test_image_has_no_tests_and_no_sandbox() -> None:
    tops = {path.relative_to(recipe.REPOSITORY).parts[0] for path in recipe.copied()}
    assert tops.isdisjoint({"tests", "sandbox", "molecule", "deploy", ".git"})


def test_warm_runner_preloads_and_trusts_the_modules_of_the_collection() -> None:
    dockerfile = (recipe.REPOSITORY / "Dockerfile").read_text()
    package = "ansible_collections.etcdops.etcd.plugins.modules"
    assert f"WARM_RUNNER_PRELOAD={package} " in dockerfile
    found = re.search(r"WARM_RUNNER_TRUSTED=(\S+)", dockerfile)
    assert found
    assert found[1].split(",") == ["ansible.builtin.include_tasks", "requeue_after", package]


def test_key_changes_with_content_mode_and_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
