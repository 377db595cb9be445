from __future__ import annotations

from typing import Any

import pytest

from benchmarks import operator_pod
from sandbox.errors import SandboxError


def _deployment(*env: dict[str, str]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "operator", "env": list(env)}]}}}}


def _pod(name: str, phase: str = "Running", **meta: str) -> dict[str, Any]:
    return {"metadata": {"name": name, **meta}, "status": {"phase": phase}}


def test_what_the_switch_says() -> None:
    other = {"name": "WATCH_NAMESPACE", "value": ""}
    assert operator_pod.switch(_deployment(other)) is None
    assert operator_pod.switch(_deployment(other, {"name": "WARM_RUNNER", "value": "off"})) == "off"
    del (bare := _deployment())["spec"]["template"]["spec"]["containers"][0]["env"]
    assert operator_pod.switch(bare) is None


def test_a_pod_that_ends_does_not_count() -> None:
    pods = [_pod("old", deletionTimestamp="2026-01-01T00:00:00Z"), _pod("done", "Succeeded"), _pod("new")]
    assert operator_pod.only(pods)["metadata"]["name"] == "new"


@pytest.mark.parametrize("pods", [[], [_pod("one"), _pod("two")]])
def test_one_operator_is_needed(pods: list[dict[str, Any]]) -> None:
    with pytest.raises(SandboxError, match=f"{len(pods)} pods of the operator"):
        operator_pod.only(pods)
