"""A bucket of an object store, whatever kind of store it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .errors import StoreError
from .object_store_errors import explain, request_errors


@dataclass(frozen=True)
class Bucket:
    """A bucket of an object store. Nothing more is needed of any kind of store than this."""

    url: str  # s3://backups
    service: str  # for messages: "the store https://s3.example.com"
    store: Any  # an obstore store
    abort_uploads: Callable[[str], int]  # discards unfinished uploads of a key, and returns how many there were

    def found(self, key: str) -> bool | None:
        """Whether the object exists; None if the store does not tell us."""
        import obstore  # noqa: PLC0415  slow to import, and files don't need it
        from obstore.exceptions import PermissionDeniedError  # noqa: PLC0415

        with self.explained(key):
            try:
                obstore.head(self.store, key)
            except FileNotFoundError:
                return False
            except PermissionDeniedError:
                return None
            return True

    def explain(self, key: str, error: Exception) -> str:
        return explain(error, self.service, f"{self.url}/{key}")

    @contextmanager
    def explained(self, key: str) -> Iterator[None]:
        """Errors of the store in words that name it, the object and the cause."""
        try:
            yield
        except request_errors() as error:
            raise StoreError(self.explain(key, error)) from error
