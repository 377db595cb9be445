"""The exception of the sandbox."""

from __future__ import annotations


class SandboxError(Exception):
    """An error for the user: what happened, and what to do."""
