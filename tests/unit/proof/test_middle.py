from __future__ import annotations

from typing import Any

from proof import middle


def _pod(name: str, version: str, *, ready: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"image": f"registry.example:5000/etcd:v{version}"}]},
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }


def test_who_has_moved() -> None:
    pods = [_pod("a-0", "3.5.35"), _pod("a-1", "3.5.35", ready=False), _pod("a-2", "3.6.16")]
    assert middle.moved(pods, "3.6.16") == (["a-2"], ["a-0", "a-1"])


def test_one_that_does_not_serve_yet_has_not() -> None:
    assert middle.moved([_pod("a-2", "3.6.16", ready=False)], "3.6.16") == ([], [])
    assert middle.moved([_pod("a-2", "3.6.16") | {"status": {}}], "3.6.16") == ([], [])
