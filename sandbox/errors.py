"""The one error that the sandbox shows to a person."""

from __future__ import annotations


class SandboxError(Exception):
    """Something a person must know: one sentence that says what happened and what to do."""
