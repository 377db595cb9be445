from __future__ import annotations

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.versions import refusal


@pytest.mark.parametrize(
    ("running", "target"),
    [
        (["3.5.35", "3.5.35", "3.5.35"], "3.5.36"),
        (["3.5.35", "3.5.35", "3.5.35"], "3.6.16"),
        (["3.6.16", "3.5.35", "3.5.35"], "3.6.16"),  # in the middle
        (["3.6.16", "3.6.16", "3.5.35"], "3.5.35"),  # and back again
        (["3.6.16", "3.6.16", "3.6.15"], "3.6.15"),
        (["3.6.16"], "3.7.3"),
        ([], "3.7.3"),
    ],
)
def test_allowed(running: list[str], target: str) -> None:
    assert refusal(running, target) == ""


@pytest.mark.parametrize(
    ("running", "target", "said"),
    [
        (["3.5.35"], "3.7.3", "from 3.5.35 to 3.6 first"),
        (["3.6.16", "3.5.35"], "3.7.3", "from 3.5.35 to 3.6 first"),
        (["3.6.16", "3.6.16"], "3.5.35", "can't go back from 3.6.16 to 3.5.35"),
        (["3.5.25"], "3.6.16", "from 3.5.26 or later only"),
        (["3.5.35", "3.5.25"], "3.6.16", "from 3.5.26 or later only"),
    ],
)
def test_refused_with_what_to_do(running: list[str], target: str, said: str) -> None:
    assert said in refusal(running, target)
