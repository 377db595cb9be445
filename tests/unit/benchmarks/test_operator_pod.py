from __future__ import annotations

from typing import Any

import pytest

from benchmarks import operator_pod
from sandbox.errors import SandboxError


def _deployment(*env: dict[str, str]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "operator", "env": list(env)}]}}}}


def _pod(name: str, phase: str = "Running", **meta: str) -> dict[str, Any]:
    return {"metadata": {"name": name, **meta}, "status": {"phase": phase}}


def test_warm_runner_setting_is_read_from_the_deployment() -> None:
    other = {"name": "WATCH_NAMESPACE", "value": ""}
    assert operator_pod.warm_runner_setting(_deployment(other)) is None
    assert operator_pod.warm_runner_setting(_deployment(other, {"name": "WARM_RUNNER", "value": "off"})) == "off"
    del (bare := _deployment())["spec"]["template"]["spec"]["containers"][0]["env"]
    assert operator_pod.warm_runner_setting(bare) is None


def test_terminating_and_completed_pods_are_ignored() -> None:
    pods = [_pod("old", deletionTimestamp="2026-01-01T00:00:00Z"), _pod("done", "Succeeded"), _pod("new")]
    assert operator_pod.running_pod(pods)["metadata"]["name"] == "new"


@pytest.mark.parametrize("pods", [[], [_pod("one"), _pod("two")]])
def test_exactly_one_running_pod_is_required(pods: list[dict[str, Any]]) -> None:
    with pytest.raises(SandboxError, match=f"{len(pods)} pods of the operator"):
        operator_pod.running_pod(pods)
