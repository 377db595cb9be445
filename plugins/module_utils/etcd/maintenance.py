"""Requests to etcd about the whole cluster that are neither membership nor leadership."""

from __future__ import annotations

from .connection import Connection
from .view import ClusterView


def set_downgrade(connection: Connection, view: ClusterView, version: str, *, dry_run: bool = False) -> bool:
    """Enable a downgrade to a minor version such as 3.5, or cancel it (""); tells whether anything changed."""
    pending = view.downgrade
    if pending.startswith(f"{version}.") if version else not pending:
        return False
    if not dry_run:
        if version:
            connection.on_any(view.voter_urls, lambda client: client.downgrade("ENABLE", f"{version}.0"))
        else:
            connection.on_any(view.voter_urls, lambda client: client.downgrade("CANCEL", ""))
    return True
