"""A real Kubernetes API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .plugins.apiserver import ApiServer


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A kube-apiserver without nodes and controllers."""
    started = ApiServer.start(tmp_path_factory.mktemp("apiserver"))
    try:
        yield started
    finally:
        started.end()
