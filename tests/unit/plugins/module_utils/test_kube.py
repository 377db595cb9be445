from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import Kube, KubeError

JOB = {"kind": "Job", "metadata": {"namespace": "ns", "name": "one-cleanup"}}
GOING = "one-cleanup is forbidden: unable to create new content in namespace ns because it is being terminated"


class Refusing(Kube):
    def __init__(self, error: KubeError | None) -> None:
        super().__init__("http://127.0.0.1:1")
        self.error = error

    def _call(self, method: str, path: str, *_: Any, **__: Any) -> dict[str, Any] | None:
        assert (method, "dryRun=All" in path) == ("POST", True)
        if self.error:
            raise self.error
        return {}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, False),
        (KubeError(409, "it exists already"), False),
        (KubeError(403, "exceeded quota"), False),
        (KubeError(403, GOING), True),
    ],
)
def test_a_namespace_that_is_being_deleted(error: KubeError | None, expected: bool) -> None:
    assert Refusing(error).takes_nothing_new(JOB) is expected
