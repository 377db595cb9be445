"""Errors of stored snapshots and of the places that hold them."""

from __future__ import annotations


class StoreError(Exception):
    """A stored snapshot, or the place for it, is unusable. The message says which one, why, and what to do."""


class UnsureError(StoreError):
    """The operation failed, but the store may hold the snapshot or parts of it."""


class WrongKeyError(StoreError):
    """A snapshot can't be decrypted with the keys that were given."""
