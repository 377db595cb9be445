"""How to talk to all members of one cluster: one client per URL, with the same credentials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from .client import Client
from .endpoint import Endpoint, Tls
from .errors import EtcdError
from .fanout import ask_all, on_any

Reply = TypeVar("Reply")


@dataclass
class Connection:
    tls: Tls | None = None
    timeout: float = 5.0
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    endpoints: dict[str, Endpoint] = field(default_factory=dict)  # by URL; for names that DNS may not know yet
    _clients: dict[str, Client] = field(default_factory=dict, repr=False)

    def client(self, url: str) -> Client:
        if url not in self._clients:
            endpoint = self.endpoints.get(url) or Endpoint(url)
            self._clients[url] = Client(endpoint, self.tls, self.timeout, self.user, self.password)
        client = self._clients[url]
        # A token that one member issued is valid at all of them.
        client.token = client.token or next((other.token for other in self._clients.values() if other.token), None)
        return client

    def ask_all(
        self, urls: Sequence[str], question: Callable[[Client], Reply], deadline: float
    ) -> dict[str, Reply | EtcdError]:
        """Ask all of them concurrently; whoever refuses or is silent has its EtcdError in place of a reply."""
        clients = [self.client(url) for url in urls]
        return dict(zip(urls, ask_all(clients, question, deadline=deadline), strict=True))

    def on_any(self, urls: Sequence[str], request: Callable[[Client], Reply]) -> Reply:
        """Send a request to one after the other until one accepts it."""
        return on_any([self.client(url) for url in urls], request)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
