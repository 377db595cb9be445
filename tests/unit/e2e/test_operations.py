"""What a real etcd answers to the writer's operations, of every version that we support."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import requests

from sandbox import layout
from tests.e2e.checks.history import violations
from tests.e2e.traffic import operations
from tests.e2e.traffic.operations import Operation, Seen

from ..plugins.etcds import Cluster

Execute = Callable[[Operation], Operation]


@pytest.fixture(params=layout.ETCD_VERSIONS)
def endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    cluster = Cluster(request.param, tmp_path_factory.mktemp("operations"))
    try:
        yield cluster.bootstrap(1).endpoints[0]
    finally:
        cluster.end()


def _ask(endpoint: str, path: str, body: operations.Json) -> operations.Json:
    answer: operations.Json = requests.post(f"{endpoint}/v3{path}", json=body, timeout=5).json()
    return answer


def test_answers_of_every_operation(endpoint: str) -> None:
    def execute(asked: Operation) -> Operation:
        return operations.answered(asked, _ask(endpoint, *operations.request(asked)))

    absent = execute(Operation(1, "get", "/a/k"))
    before = absent.revision
    assert absent.seen == Seen(before)
    put = execute(Operation(2, "put", "/a/k"))
    assert (put.revision, put.changed) == (before + 1, True)
    assert execute(Operation(3, "get", "/a/k")).seen == Seen(before + 1, 2, before + 1)
    refused = execute(Operation(4, "swap", "/a/k", expected=0))
    assert (refused.changed, refused.seen) == (False, Seen(before + 1, 2, before + 1))
    swapped = execute(Operation(5, "swap", "/a/k", expected=before + 1))
    assert (swapped.changed, swapped.revision) == (True, before + 2)
    assert swapped.seen == Seen(before + 1, 2, before + 1)
    deleted = execute(Operation(6, "delete", "/a/k"))
    assert (deleted.changed, deleted.seen) == (True, Seen(before + 2, 5, before + 2))
    again = execute(Operation(7, "delete", "/a/k"))
    assert (again.changed, again.revision, again.seen) == (False, before + 3, Seen(before + 3))
    made = execute(Operation(8, "swap", "/a/k", expected=0))
    assert (made.changed, made.seen) == (True, Seen(before + 3))
    assert [operations.last_write(each) for each in (put, swapped, deleted, again)] == [before + 1, before + 2, 0, 0]


def test_history_of_a_real_member_is_accepted_and_survives_its_file(endpoint: str) -> None:
    history, known = list[Operation](), dict[str, int]()
    for number in range(1, 100):
        asked = operations.operation(number, "/b/", known)
        done = operations.answered(asked, _ask(endpoint, *operations.request(asked)))
        known[done.key] = operations.last_write(done)
        history.append(operations.from_line(operations.line(done)))
    kinds = {(each.kind, each.changed) for each in history}
    assert kinds >= {("put", True), ("get", False), ("delete", True), ("swap", True)}
    answer = _ask(endpoint, "/kv/range", operations.range_over("/b/"))
    assert violations([*history, *operations.read_back(history, "/b/", answer, end=1)]) == []
    lost = {**answer, "kvs": answer["kvs"][1:]}
    assert violations([*history, *operations.read_back(history, "/b/", lost, end=1)])
