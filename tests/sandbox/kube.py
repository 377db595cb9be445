"""kubectl for tests."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from sandbox import cluster
from sandbox.errors import SandboxError


@dataclass(frozen=True)
class Namespace:
    """kubectl in the namespace of a test."""

    name: str

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return cluster.kubectl(f"--namespace={self.name}", *arguments, stdin=stdin)

    def get(self, *what: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.kubectl("get", *what, "--output=json"))
        return value

    def apply(self, *objects: dict[str, Any]) -> None:
        manifest = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "--filename=-", stdin=json.dumps(manifest))


def eventually(check: Callable[[], Any], timeout: float = 60) -> Any:
    """Wait for the first true result; a failing `kubectl` is tried again."""
    end = time.monotonic() + timeout
    last: Any = None
    while time.monotonic() < end:
        try:
            if last := check():
                return last
        except SandboxError as error:
            last = error
        time.sleep(0.3)
    pytest.fail(f"timed out after {timeout:.0f} s; the last result was {last!r}")
