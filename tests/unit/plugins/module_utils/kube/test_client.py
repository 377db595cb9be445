from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Asked, Kube, KubeError

JOB = {"kind": "Job", "metadata": {"namespace": "ns", "name": "one-cleanup"}}
GOING = "one-cleanup is forbidden: unable to create new content in namespace ns because it is being terminated"


class Refusing(Kube):
    def __init__(self, error: KubeError | None) -> None:
        super().__init__("http://127.0.0.1:1")
        self.error = error

    def _call(self, method: str, path: str, *_: Any, **__: Any) -> dict[str, Any] | None:
        assert (method, "dryRun=All" in path) == ("POST", True)
        if self.error:
            raise self.error
        return {}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, False),
        (KubeError(409, "it exists already"), False),
        (KubeError(403, "exceeded quota"), False),
        (KubeError(403, GOING), True),
    ],
)
def test_a_namespace_that_is_being_deleted(error: KubeError | None, expected: bool) -> None:
    assert Refusing(error).takes_nothing_new(JOB) is expected


class Server(ThreadingHTTPServer):
    """Answers with the path that it was asked for; hangs up after each answer of so many, 0: never."""

    daemon_threads = True

    def __init__(self, hang_up_after: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hang_up_after, self.answers, self.connections = hang_up_after, 0, 0

    def get_request(self) -> Any:
        self.connections += 1
        return super().get_request()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.answers += 1
        status = next((code for code in (403, 404) if f"/{code}" in self.path), 200)
        content = json.dumps({"message": self.path, "items": [{"path": self.path}]}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if self.server.hang_up_after and self.server.answers % self.server.hang_up_after == 0:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=[0, 1, 3], ids=["never hangs up", "always hangs up", "hangs up in between"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(request.param) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def kube(server: Server) -> Iterator[Kube]:
    kube = Kube(f"http://127.0.0.1:{server.server_port}")
    yield kube
    kube._connection.close()


ASKED = [
    Asked("Pod", "ns", selector="a=b"),
    Asked("Secret", "ns", "404"),
    *(Asked("Secret", "ns", f"s{number}") for number in range(6)),
]


def test_questions_that_are_sent_at_once_are_answered_in_order(server: Server, kube: Kube) -> None:
    pods, absent, *others = kube.read(ASKED)
    assert pods == [{"path": "/api/v1/namespaces/ns/pods?labelSelector=a%3Db"}]
    assert absent == []
    assert [one["message"] for (one,) in others] == [f"/api/v1/namespaces/ns/secrets/s{n}" for n in range(6)]
    assert kube.get("Secret", "ns", "next") == {
        "message": "/api/v1/namespaces/ns/secrets/next",
        "items": [{"path": "/api/v1/namespaces/ns/secrets/next"}],
    }
    if not server.hang_up_after:
        assert server.connections == 1


def test_a_refusal_is_of_its_own_question(kube: Kube) -> None:
    with pytest.raises(KubeError, match="secrets/403") as refused:
        list(kube.read([ASKED[0], Asked("Secret", "ns", "403"), *ASKED[1:]]))
    assert refused.value.status == 403
    assert (kube.get("Secret", "ns", "next") or {})["message"].endswith("/secrets/next")


def test_a_list_that_is_not_there_is_an_error(kube: Kube) -> None:
    with pytest.raises(KubeError) as refused:
        list(kube.read([Asked("Pod", "404", selector="a=b")]))
    assert refused.value.status == 404


def test_nobody_answers_any_question() -> None:
    with pytest.raises(KubeError, match="does not answer") as silence:
        list(Kube("http://127.0.0.1:1").read(ASKED))
    assert silence.value.status == 0
