"""Shortcuts give the same results as stock."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from types import SimpleNamespace
from typing import Any

import pytest

from warm_runner import shortcuts

from .plays import make_role, run_role, run_role_with
from .warm import Warm, wait_for

_SAY = """
- name: Say
  ansible.builtin.debug:
    msg: "{{ lookup('env', 'ANSIBLE_TASK_TIMEOUT') }} {{ lookup('env', 'TERM') | default('dumb', true) }}"
"""


class Receiver(ThreadingUnixStreamServer):
    """As ansible-operator listens for events."""

    daemon_threads = True

    def __init__(self, path: Path, hang_up: bool) -> None:
        self.path, self.hang_up = path, hang_up
        self.events: list[tuple[str, str | None, str | None, Any]] = []
        self.connections = 0
        super().__init__(str(path), _Handler)

    def get_request(self) -> tuple[socket.socket, str]:
        self.connections += 1
        return super().get_request()[0], ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.events.append((self.path, self.headers["Content-Type"], self.headers["X-Mine"], data))
        self.send_response(204)
        if self.server.hang_up:
            self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=[False, True], ids=["kept open", "closed by the operator"])
def receiver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Receiver]:
    server = Receiver(tmp_path / "events", request.param)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    shortcuts.connections.pop(str(server.path)).close()
    server.shutdown()
    thread.join()
    server.server_close()


def test_events_arrive_one_by_one(receiver: Receiver) -> None:
    events = SimpleNamespace(send_request=None)
    shortcuts.send_events_over_one_connection(events)
    for number in range(3):
        answer = events.send_request(str(receiver.path), {"n": number}, headers={"X-Mine": "1"}, urlpath="/events/")
        assert answer.status == 204
        assert receiver.events[-1] == ("/events/", "application/json", "1", {"n": number})
    assert len(receiver.events) == 3
    assert receiver.connections == (3 if receiver.hang_up else 1)


def test_an_operator_that_does_not_listen_is_an_error(tmp_path: Path) -> None:
    events = SimpleNamespace(send_request=None)
    shortcuts.send_events_over_one_connection(events)
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(tmp_path / "events"))
    with pytest.raises(OSError, match="refused"):
        events.send_request(str(tmp_path / "events"), {})
    shortcuts.connections.pop(str(tmp_path / "events")).close()


def test_events_for_a_url_are_sent_by_the_plugin_itself() -> None:
    events = SimpleNamespace(send_request=lambda *arguments: arguments)
    shortcuts.send_events_over_one_connection(events)
    assert events.send_request("http://host", {"n": 1}, headers=None, urlpath="/x") == (
        "http://host",
        {"n": 1},
        {},
        "/x",
    )


_TELL = """
import os
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        said = self._task.args.pop('said')
        task_vars['said'] = task_vars['size'] = 'changed'
        if said == 'fail':
            return {'failed': True, 'msg': said}
        if said == 'raise':
            raise RuntimeError(said)
        return {'changed': False, 'said': said}
"""
_TELLING = """
- name: Once
  tell: {said: "{{ size }}"}
  register: told
- name: Again
  tell: {said: "{{ told.said }} {{ size }} {{ said | default('none') }}"}
- name: Not now
  tell: {said: no}
  when: told.said == 'no'
- name: In a loop
  tell: {said: "{{ item }}"}
  loop: [1, 2]
- name: Fails
  tell: {said: fail}
  ignore_errors: true
- name: Raises
  tell: {said: raise}
  ignore_errors: true
- name: Undefined
  tell: {said: "{{ nowhere }}"}
  ignore_errors: true
- name: Included
  ansible.builtin.include_tasks: "{{ 'more' }}.yml"
- name: Not included
  ansible.builtin.include_tasks: nowhere.yml
"""


def test_a_trusted_action_is_run_in_the_play(playbooks: Warm, tmp_path: Path) -> None:
    """With the same events; what it changes, it changes for itself only."""
    role = make_role(tmp_path / "roles/telling", _TELLING)
    (role / "tasks/more.yml").write_text("- name: One more\n  tell: {said: more}\n")
    (role / "action_plugins").mkdir()
    (role / "action_plugins/tell.py").write_text(_TELL)
    env = {"WARM_RUNNER_TRUSTED": "tell,ansible.builtin.include_tasks"}
    stock = run_role(playbooks, tmp_path / "run", role, WARM_RUNNER="off")
    before = playbooks.sockets()
    run_role(playbooks, tmp_path / "run", role, **env)
    wait_for(lambda: len(playbooks.sockets() - before) == 2)
    warm = run_role(playbooks, tmp_path / "run", role, **env)
    assert stock.results()["Again"]["said"] == "{{ 1 }} {{ 1 }} none"
    assert stock.results()["One more"]["said"] == "more"
    assert warm == stock


def test_a_playbook_without_a_server_is_run_by_the_real_program(playbooks: Warm, tmp_path: Path) -> None:
    """The process that would have become the client becomes the real program, and starts a server."""
    role = make_role(tmp_path / "roles/cold", _SAY)
    env = {"ANSIBLE_TASK_TIMEOUT": "60"}  # which no server was started with
    before = playbooks.sockets()
    stock = run_role_with(env, playbooks, tmp_path / "run", role, WARM_RUNNER="off")
    assert playbooks.sockets() == before
    cold = run_role_with(env, playbooks, tmp_path / "run", role)
    wait_for(lambda: len(playbooks.sockets()) == len(before) + 1)
    warm = run_role_with(env, playbooks, tmp_path / "run", role)
    assert "60 dumb" in str(stock.results()["Say"])
    assert cold == warm == stock
