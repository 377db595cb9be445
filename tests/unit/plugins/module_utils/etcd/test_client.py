from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.client import Client
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.endpoint import Endpoint, Tls
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import (
    FAILED_PRECONDITION,
    INVALID_ARGUMENT,
    NOT_FOUND,
    PERMISSION_DENIED,
    UNAVAILABLE,
    EtcdError,
    Unreachable,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.fanout import ask_all, on_any
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Alarm, Status

from sandbox import layout

from ...etcds import HOST, NAME, Certificates, Cluster, eventually, free_ports, healthy


def _named(url: str) -> str:
    return url.replace(HOST, NAME)


# -- one member


def test_status_and_member_list_are_parsed(one: Cluster) -> None:
    client = one.client()
    if one.version.startswith("3.5"):
        assert client.status().storage_version == ""
    else:  # known a moment after the start, when the cluster's version has settled
        eventually(lambda: client.status().storage_version.startswith("3."))
    status = client.status()
    listed = client.members()
    assert status.version == one.version
    assert status.leader_id == status.member_id == listed.members[0].id
    assert status.cluster_id == listed.cluster_id > 0
    assert status.db_size >= status.db_size_in_use > 0
    assert status.raft_index >= status.raft_applied_index > 0
    assert status.raft_term > 1
    assert (status.is_learner, status.errors) == (False, ())
    assert [(member.name, member.peer_urls, member.client_urls) for member in listed.members] == [
        ("m0", (one.members[0].peer_url,), (one.members[0].client_url,))
    ]
    assert client.members(linearizable=False) == listed
    assert client.alarms() == ()


def test_value_is_written_and_read(one: Cluster) -> None:
    client = one.client()
    client.put("greeting", "Grüß Gott")
    assert client.get("greeting") == "Grüß Gott".encode()
    client.put("empty", "")
    assert client.get("empty") == b""
    assert client.get("nothing") is None


def test_one_connection_serves_many_requests_and_survives_a_refusal(own: Cluster) -> None:
    client = own.client()
    client.status()
    connection = client._connection
    with pytest.raises(EtcdError):
        client.member_remove(1)
    client.status()
    assert client._connection is connection is not None


def test_restarted_member_is_connected_to_again(own: Cluster) -> None:
    client = own.client()
    client.put("a", "1")
    own.members[0].kill()
    with pytest.raises(Unreachable, match="connection refused"):
        client.status()
    own.start(own.members[0])
    assert eventually(lambda: client.get("a")) == b"1"


def test_refusals_carry_etcds_code_and_message(one: Cluster) -> None:
    client = one.client()
    with pytest.raises(EtcdError) as refused:
        client.member_remove(1)
    assert (refused.value.code, refused.value.message) == (NOT_FOUND, "etcdserver: member not found")
    assert str(refused.value) == f"{one.endpoints[0]}: etcdserver: member not found"
    with pytest.raises(EtcdError) as refused:
        client.member_add([one.members[0].peer_url], learner=True)
    assert (refused.value.code, refused.value.message) == (FAILED_PRECONDITION, "etcdserver: Peer URLs already exists")
    with pytest.raises(EtcdError) as refused:
        client.member_add(["nonsense"], learner=True)
    assert refused.value.code == INVALID_ARGUMENT
    assert refused.value.final


def test_alarms_are_listed_and_disarmed(own: Cluster) -> None:
    client = own.client()
    mine = client.status().member_id
    client.call("maintenance/alarm", {"action": "ACTIVATE", "memberID": str(mine), "alarm": "NOSPACE"})
    assert client.alarms() == (Alarm(mine, "NOSPACE"),)
    assert "NOSPACE" in client.status().errors[0]
    with pytest.raises(EtcdError, match="space exceeded"):
        client.put("a", "1")
    client.alarm_disarm(Alarm(mine, "NOSPACE"))
    assert client.alarms() == ()
    client.put("a", "1")


def test_defragment_frees_space(own: Cluster) -> None:
    client = own.client()
    for number in range(20):
        client.put("big", f"{number}" * 100_000)
    client.call("kv/compaction", {"revision": str(client.status().revision), "physical": True})
    before = client.status().db_size
    client.defragment()
    assert client.status().db_size < before


# -- membership


def test_learner_joins_and_is_promoted(own: Cluster) -> None:
    client = own.client()
    joining = own.prepare("m1")
    added = client.member_add([joining.peer_url], learner=True)
    assert (added.name, added.peer_urls, added.client_urls, added.is_learner) == ("", (joining.peer_url,), (), True)

    with pytest.raises(EtcdError) as refused:
        client.member_promote(added.id)
    assert refused.value.not_in_sync
    assert refused.value.final

    own.start(joining, state="existing")
    learner = own.client(joining)
    status = eventually(learner.status)
    assert (status.member_id, status.is_learner) == (added.id, True)
    for refuse in (learner.members, learner.health):
        with pytest.raises(EtcdError, match="not supported for learner") as refused:
            refuse()
        assert not refused.value.final

    # A learner turns membership requests away; on_any goes on to the voter.
    promoted = eventually(lambda: on_any([learner, client], lambda one: one.member_promote(added.id)))
    assert [(member.name, member.is_learner) for member in promoted.members if member.id == added.id] == [("m1", False)]
    eventually(healthy(learner))

    with pytest.raises(EtcdError, match=r"can only promote a learner member$"):
        client.member_promote(added.id)


def test_removed_learner_does_not_return(own: Cluster) -> None:
    client = own.client()
    added = client.member_add([f"http://{HOST}:1"], learner=True)
    assert [member.name for member in client.member_remove(added.id).members] == ["m0"]
    with pytest.raises(EtcdError) as refused:
        client.member_remove(added.id)
    assert refused.value.code == NOT_FOUND


def test_peer_urls_are_changed(own: Cluster) -> None:
    client = own.client()
    added = client.member_add([f"http://{HOST}:1"], learner=True)
    changed = client.member_update(added.id, [f"http://{HOST}:2", f"http://{HOST}:3"])
    assert {member.id: set(member.peer_urls) for member in changed.members}[added.id] == {
        f"http://{HOST}:2",
        f"http://{HOST}:3",
    }
    with pytest.raises(EtcdError, match="member not found"):
        client.member_update(1, [f"http://{HOST}:4"])


# -- three members


def test_leadership_moves_and_only_the_leader_takes_the_request(three: Cluster) -> None:
    leader = three.leader()
    follower = next(member for member in three.members if member is not leader)
    target = three.client(follower).status().member_id
    with pytest.raises(EtcdError, match="not leader") as refused:
        three.client(follower).move_leader(target)
    assert not refused.value.final
    on_any([three.client(member) for member in three.members], lambda one: one.move_leader(target))
    eventually(lambda: three.client().status().leader_id == target)


def test_all_members_are_asked_concurrently_and_silence_is_an_answer(three: Cluster) -> None:
    frozen = next(member for member in three.members if member is not three.leader())
    nobody = f"http://{HOST}:{free_ports(1)[0]}"
    frozen.freeze()
    try:
        started = time.monotonic()
        clients = [Client(Endpoint(url), timeout=1.0) for url in [*three.endpoints, nobody]]
        answers = ask_all(clients, lambda one: one.status())
        assert time.monotonic() - started < 2.0
    finally:
        frozen.thaw()
        for client in clients:
            client.close()
    by_url = dict(zip([*three.endpoints, nobody], answers, strict=True))
    silent = by_url.pop(frozen.client_url)
    assert isinstance(silent, Unreachable)
    assert str(silent) == f"{frozen.client_url}: no answer within 1 s"
    assert str(by_url.pop(nobody)) == f"{nobody}: connection refused"
    assert all(isinstance(answer, Status) for answer in by_url.values())
    eventually(healthy(three.client(frozen)))


def test_member_without_quorum_still_reports_its_own_status(own_three: Cluster) -> None:
    survivor, *others = own_three.members
    client = own_three.client(survivor, timeout=1.0)
    before = client.members()
    for other in others:
        other.kill()
    eventually(lambda: client.status().leader_id == 0)
    assert client.status().errors == ("etcdserver: no leader",)
    assert client.members(linearizable=False) == before
    started = time.monotonic()
    for ask in (client.health, client.members, client.alarms):
        with pytest.raises(EtcdError, match="no leader") as refused:
            ask()
        assert refused.value.code == UNAVAILABLE
        assert not isinstance(refused.value, Unreachable)
    assert time.monotonic() - started < 1.0
    with pytest.raises(EtcdError, match="the request timed out in the cluster") as refused:
        client.put("a", "1")
    assert not refused.value.final


# -- TLS


def test_client_certificate_is_accepted(secure: Cluster) -> None:
    client = secure.client()
    client.put("a", "1")
    connection = client._connection
    assert client.get("a") == b"1"
    assert client._connection is connection is not None
    assert client.members().members[0].client_urls == (secure.endpoints[0],)


def test_name_is_verified_while_the_address_is_connected_to(secure: Cluster, certificates: Certificates) -> None:
    url = secure.endpoints[0]
    with Client(Endpoint(_named(url), HOST), certificates.client) as client:
        client.health()
    wrong = url.replace(HOST, "another.test")
    with (
        Client(Endpoint(wrong, HOST), certificates.client) as client,
        pytest.raises(Unreachable, match=r"its certificate is not trusted: Hostname mismatch.*another\.test"),
    ):
        client.health()


@pytest.mark.parametrize(
    ("ca", "pair", "message"),
    [
        ("foreign-ca.crt", "client", "its certificate is not trusted: unable to get local issuer certificate"),
        (None, "client", "its certificate is not trusted"),
        ("ca.crt", None, "refused the client certificate, or requires one|does it require a client certificate"),
        ("ca.crt", "foreign", "refused the client certificate, or requires one|closed the connection"),
    ],
)
def test_refused_tls_handshake_is_explained(
    secure: Cluster, certificates: Certificates, ca: str | None, pair: str | None, message: str
) -> None:
    tls = Tls(
        certificates.path(ca) if ca else None,
        certificates.path(f"{pair}.crt") if pair else None,
        certificates.path(f"{pair}.key") if pair else None,
    )
    with Client(Endpoint(secure.endpoints[0]), tls) as client, pytest.raises(Unreachable, match=message):
        client.status()


def test_wrong_scheme_is_explained(one: Cluster, secure: Cluster, certificates: Certificates) -> None:
    plain = secure.endpoints[0].replace("https", "http")
    with Client(Endpoint(plain)) as client, pytest.raises(Unreachable, match="should the URL begin with https://"):
        client.status()
    tls = one.endpoints[0].replace("http", "https")
    with (
        Client(Endpoint(tls), certificates.client) as client,
        pytest.raises(Unreachable, match="does it use TLS, or should the URL begin with http://"),
    ):
        client.status()


def test_unusable_certificate_files_are_named(certificates: Certificates) -> None:
    ca, client_cert = certificates.path("ca.crt"), certificates.path("client.crt")
    for tls, message in (
        (Tls("/nowhere/ca.crt"), r"the CA file /nowhere/ca.crt can't be used: No such file"),
        (Tls(certificates.path("ca.key")), r"the CA file .*ca.key can't be used: no certificate or crl found"),
        (Tls(ca, client_cert, "/nowhere/key"), r"with the key /nowhere/key can't be used: No such file"),
        (Tls(ca, client_cert, certificates.path("ca.key")), "can't be used: key values mismatch"),
    ):
        with pytest.raises(EtcdError, match=message) as refused:
            _ = tls.context
        assert not isinstance(refused.value, Unreachable)


# -- auth


def test_users_log_in_when_auth_is_enabled(own: Cluster) -> None:
    client = own.client(user="root")
    client.put("a", "1")  # auth is off: the user does not matter yet
    own.enable_auth()

    assert client.get("a") == b"1"  # now it does

    root = own.client(user="root")
    assert root.get("a") == b"1"
    assert len(root.members().members) == 1
    assert root.status().version == own.version
    assert root.alarms() == ()
    root.member_remove(root.member_add([f"http://{HOST}:1"], learner=True).id)

    guest = own.client(user="guest")
    assert not guest.health()  # may read nothing, and knows thereby that there is quorum
    with pytest.raises(EtcdError) as refused:
        guest.get("a")
    assert refused.value.code == PERMISSION_DENIED
    with pytest.raises(EtcdError, match="authentication failed, invalid user ID or password"):
        own.client(user="stranger").status()
    with pytest.raises(EtcdError, match="user name is empty"):
        own.client().get("a")

    # What ends a token: a change of users, a restart.
    root.call("auth/user/delete", {"name": "guest"})
    assert root.get("a") == b"1"
    own.members[0].kill()
    own.start(own.members[0])
    assert eventually(lambda: root.get("a")) == b"1"


# -- what is on the wire besides etcd


def _answers_with(text: bytes) -> tuple[str, threading.Thread]:
    """A server that says one thing, once. It reads to the end: closing a connection with unread data resets it."""
    listener = socket.create_server((HOST, 0))

    def serve() -> None:
        with listener, listener.accept()[0] as accepted, suppress(ConnectionError):
            accepted.recv(65536)
            accepted.sendall(text)
            accepted.shutdown(socket.SHUT_WR)
            while accepted.recv(65536):
                pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return f"http://{HOST}:{listener.getsockname()[1]}", thread


@pytest.mark.parametrize(
    "text",
    [
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nNot Found",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<p/>",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n" + b'{"header": 1}',
        b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + b"[" * 20000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n" + b" " * 400_000,
    ],
)
def test_server_that_is_not_etcd_is_refused(text: bytes) -> None:
    url, thread = _answers_with(text)
    with Client(Endpoint(url)) as client, pytest.raises(EtcdError, match="is this a client URL of etcd"):
        client.status()
    thread.join(5)


@pytest.mark.parametrize("text", [b"", b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n{"])
def test_incomplete_answer_is_unreachable(text: bytes) -> None:
    url, thread = _answers_with(text)
    with Client(Endpoint(url)) as client, pytest.raises(Unreachable, match="closed the connection without an answer"):
        client.status()
    thread.join(5)


def test_silent_member_is_unreachable_after_the_timeout() -> None:
    with socket.create_server((HOST, 0)) as listener:
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        started = time.monotonic()
        with Client(Endpoint(url), timeout=0.3) as client, pytest.raises(Unreachable, match=r"no answer within 0.3 s"):
            client.status()
        assert time.monotonic() - started < 1.0


@pytest.mark.parametrize("text", [b"x", b"HTTP/1.1 200 OK\r\n" + b"X: " * 100, b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 100])
def test_answer_that_drips_ends_with_the_timeout(text: bytes) -> None:
    def drip(listener: socket.socket) -> None:
        with suppress(OSError), listener.accept()[0] as accepted:
            accepted.sendall(text)
            for _ in range(40):
                accepted.sendall(b" ")
                time.sleep(0.05)

    with socket.create_server((HOST, 0)) as listener:
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        threading.Thread(target=drip, args=(listener,), daemon=True).start()
        started = time.monotonic()
        with Client(Endpoint(url), timeout=0.3) as client, pytest.raises(Unreachable, match=r"no answer within 0.3 s"):
            client.status()
        assert time.monotonic() - started < 1.0


def test_name_that_does_not_resolve_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with Client(Endpoint("http://a..b:2379")) as client, pytest.raises(Unreachable, match="name does not resolve"):
        client.status()
    monkeypatch.setattr(socket, "getaddrinfo", nobody)  # a real question would leave the machine
    with (
        Client(Endpoint("http://a.test:2379")) as client,
        pytest.raises(Unreachable, match=r"does not resolve .Name or"),
    ):
        client.status()


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:2379", "ftp://a:1", "http://", "http://a:b", "http://a:0", "http://[::1"]
)
def test_invalid_endpoint_is_refused(url: str) -> None:
    with pytest.raises(EtcdError, match="is not an endpoint; use a URL such as"):
        Endpoint(url)


def test_endpoint_urls_are_parsed() -> None:
    six = Endpoint("https://[fd00::1]:2379")
    assert (six.secure, six.host, six.port) == (True, "fd00::1", 2379)
    assert Endpoint("http://a").port == 80


# -- asking many


def test_member_that_is_silent_at_the_deadline_is_not_waited_for() -> None:
    release = threading.Event()

    def ask(name: str) -> str:
        if name == "slow":
            release.wait(10)
        return name.upper()

    answers = ask_all(["quick", "slow"], ask, deadline=0.2)
    release.set()
    assert answers[0] == "QUICK"
    assert isinstance(answers[1], Unreachable)
    assert str(answers[1]) == "slow: no answer within 0.2 s"


def test_exception_in_the_question_is_raised() -> None:
    def ask(_: str) -> None:
        raise KeyError("oops")

    with pytest.raises(KeyError):
        ask_all(["a"], ask)
    assert ask_all([], ask) == []


def test_request_goes_to_the_next_member_until_it_is_accepted_or_finally_refused() -> None:
    unhealthy = EtcdError(UNAVAILABLE, "etcdserver: unhealthy cluster")
    exists = EtcdError(FAILED_PRECONDITION, "etcdserver: Peer URLs already exists")
    behaviour: dict[str, EtcdError | str] = {
        "sulks": unhealthy,
        "is down": Unreachable("connection refused"),
        "knows better": exists,
        "takes it": "done",
    }
    asked: list[str] = []

    def call(one: str) -> str:
        asked.append(one)
        answer = behaviour[one]
        if isinstance(answer, EtcdError):
            raise answer
        return answer

    assert on_any(["sulks", "is down", "takes it", "knows better"], call) == "done"
    assert asked == ["sulks", "is down", "takes it"]
    with pytest.raises(EtcdError) as refused:
        on_any(["sulks", "knows better", "takes it"], call)
    assert refused.value is exists
    with pytest.raises(EtcdError) as refused:
        on_any(["is down", "sulks"], call)
    assert refused.value is unhealthy
    with pytest.raises(EtcdError, match="no member to ask"):
        on_any([], call)


def test_import_loads_no_heavy_library() -> None:
    """The operator imports it at every reconcile."""
    script = (
        "import sys; before = set(sys.modules)\n"
        "import ansible_collections.etcdops.etcd.plugins.module_utils.etcd.client\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(layout.REPOSITORY / ".build/collections")},
        check=True,
        capture_output=True,
        text=True,
    )
    assert set(found.stdout.split()) - set(sys.stdlib_module_names) == {"ansible_collections"}
