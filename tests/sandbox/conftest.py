"""Tests of the sandbox. They run on the sandbox that ETCDOPS_SANDBOX names, and leave it up."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from sandbox import cluster, layout

from .kube import Namespace, eventually


@pytest.fixture(scope="session")
def up() -> None:
    cluster.up(3)


@pytest.fixture(scope="module")
def namespace(up: None) -> Iterator[Namespace]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    eventually(lambda: cluster.kubectl(f"--namespace={name}", "get", "serviceaccount", "default"))
    yield Namespace(name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def etcd(namespace: Namespace) -> Namespace:
    """A three-member etcd, one member on each node."""
    namespace.kubectl("apply", f"--filename={layout.REPOSITORY}/sandbox/samples/etcd.yaml")
    namespace.kubectl("rollout", "status", "statefulset/etcd", "--timeout=90s")
    return namespace
