"""A Kubernetes object as plain data. Nothing here talks to a server, so pure code may import it."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]
Manifests = list[Manifest]
