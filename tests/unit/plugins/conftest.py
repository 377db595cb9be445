"""Clusters of real etcd, of every version that we support, an S3 server, and namespaces of a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube

from sandbox import layout

from .apiserver import ApiServer
from .etcds import Certificates, Cluster
from .objects import Namespace
from .stores import Store


@pytest.fixture(scope="session", params=layout.ETCD_VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("pki") / "files")


@pytest.fixture(scope="session")
def one(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One member in plain text. To read, and to leave as it was."""
    yield from _running(Cluster(version, tmp_path_factory.mktemp("one")), 1)


@pytest.fixture(scope="session")
def three(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three members in plain text. To read, and to leave as they were."""
    yield from _running(Cluster(version, tmp_path_factory.mktemp("three")), 3)


@pytest.fixture(scope="session")
def secure(version: str, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One member with TLS and client certificates. To read, and to leave as it was."""
    yield from _running(Cluster(version, tmp_path_factory.mktemp("secure"), certificates), 1)


@pytest.fixture
def own(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One member of the test's own, to do with as it likes."""
    yield from _running(Cluster(version, tmp_path_factory.mktemp("own")), 1)


@pytest.fixture
def own_three(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three members of the test's own."""
    yield from _running(Cluster(version, tmp_path_factory.mktemp("own-three")), 3)


@pytest.fixture(scope="session")
def store(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An S3 server with one bucket."""
    started = Store.start(tmp_path_factory.mktemp("s3"), certificates)
    try:
        yield started
    finally:
        started.end()


@pytest.fixture(scope="session")
def kinds(apiserver: ApiServer) -> ApiServer:
    """The same, with our custom resources."""
    for path in sorted((layout.REPOSITORY / "deploy/crd").glob("etcd*.yaml")):
        apiserver.define(path)
    return apiserver


@pytest.fixture
def namespace(kinds: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Namespace:
    """A namespace of the test's own; modules find the API server too."""
    monkeypatch.setenv("KUBECONFIG", str(kinds.kubeconfig()))
    name = f"test-{uuid4().hex[:8]}"
    kinds.namespace(name)
    return Namespace(Kube(kinds.settings), name)


def _running(cluster: Cluster, size: int) -> Iterator[Cluster]:
    try:
        yield cluster.bootstrap(size)
    finally:
        cluster.end()
