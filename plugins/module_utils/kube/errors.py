"""What can be wrong with a request to the API server."""

from __future__ import annotations


class KubeError(Exception):
    """The API server refused a request, or did not answer (status 0)."""

    def __init__(self, status: int, message: str, said: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.said = said or message  # by the API server, without the request


class ChangedError(KubeError):
    """An object is not the one any more that a change was decided on."""
