from __future__ import annotations

from collections.abc import Iterator

import pytest

from ...apiserver import ApiServer
from .live import Live, live


@pytest.fixture
def three_live(apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """An EtcdCluster of three members that run and have pods."""
    with live(apiserver, tmp_path_factory.mktemp("live")) as found:
        found.pods()
        yield found
