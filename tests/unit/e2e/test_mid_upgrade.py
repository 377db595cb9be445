from __future__ import annotations

from typing import Any

from tests.e2e.waits import mid_upgrade


def _pod(name: str, version: str, *, ready: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"image": f"registry.example:5000/etcd:v{version}"}]},
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }


def test_upgraded_pods_are_told_from_the_others() -> None:
    pods = [_pod("a-0", "3.5.35"), _pod("a-1", "3.5.35", ready=False), _pod("a-2", "3.6.16")]
    assert mid_upgrade.upgraded(pods, "3.6.16") == (["a-2"], ["a-0", "a-1"])


def test_pod_that_is_not_ready_is_not_upgraded() -> None:
    assert mid_upgrade.upgraded([_pod("a-2", "3.6.16", ready=False)], "3.6.16") == ([], [])
    assert mid_upgrade.upgraded([_pod("a-2", "3.6.16") | {"status": {}}], "3.6.16") == ([], [])
