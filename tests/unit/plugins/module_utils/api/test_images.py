from __future__ import annotations

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api import images
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster

DIGEST = f"sha256:{'a' * 64}"


def _cluster(repository: str = "gcr.io/etcd-development/etcd", image: str = "") -> Cluster:
    return Cluster("e", "ns", "u", 1, 3, "3.6.16", repository=repository, spec_image=image)


@pytest.mark.parametrize(
    ("repository", "image", "accepted"),
    [
        ("registry.example.com:5000/etcd", "", True),
        ("registry.example.com:5000/etcd/patched", "", True),
        ("registry.example.com:5000/etcd-of-mallory", "", False),
        ("registry.example.com:5000/other", "", False),
        ("registry.example.com", "", False),
        ("mirror.example.com/any/etcd", "", True),
        ("evil.example.com/etcd", f"registry.example.com:5000/etcd@{DIGEST}", True),
        ("registry.example.com:5000/etcd", f"evil.example.com/etcd@{DIGEST}", False),
    ],
)
def test_prefix_ends_where_a_name_ends(
    monkeypatch: pytest.MonkeyPatch, repository: str, image: str, accepted: bool
) -> None:
    monkeypatch.setenv(images.SETTING, " registry.example.com:5000/etcd, mirror.example.com/,")
    why = images.refusal(_cluster(repository, image), images.allowed())
    assert (why == "") == accepted
    if why:
        assert why.startswith("spec.image: " if image else "spec.repository: ")
        assert "Use one of registry.example.com:5000/etcd, mirror.example.com, or have its administrator add" in why


def test_every_image_is_allowed_without_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", " , "):
        monkeypatch.setenv(images.SETTING, value)
        assert images.refusal(_cluster("any"), images.allowed()) == ""


def test_image_by_digest_is_that_of_one_version() -> None:
    pinned = _cluster(image=f"registry.example.com/etcd@{DIGEST}")
    assert pinned.image() == pinned.image("3.6.16") == f"registry.example.com/etcd@{DIGEST}"
    assert pinned.image("3.5.35") == "registry.example.com/etcd:v3.5.35"
    assert _cluster().image() == "gcr.io/etcd-development/etcd:v3.6.16"
