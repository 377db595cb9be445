"""The one exception of this package."""

from __future__ import annotations


class KubeError(Exception):
    """The API server refused a request, or did not answer (status 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ChangedError(KubeError):
    """An object is not the one any more that a change was decided on."""
