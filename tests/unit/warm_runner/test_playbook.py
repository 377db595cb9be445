"""Roles and playbooks give the same results, warm and stock."""

from __future__ import annotations

from pathlib import Path

import pytest

from .plays import make_role, run_role
from .warm import Warm, wait_for

_ROLE = """
- name: Say
  ansible.builtin.debug:
    msg: "{{ ansible_operator_meta.name }} {{ lookup('env', 'KUBECONFIG') }} {{ size }}"
- name: Skip
  ansible.builtin.debug:
  when: false
- name: Wait
  ansible.builtin.pause:
    seconds: 1
- name: Include
  ansible.builtin.include_tasks: more.yml
  loop: [1, 2]
- name: Look
  ansible.builtin.stat:
    path: /
    get_checksum: false
- name: Command
  ansible.builtin.command: echo hello
  changed_when: false
- name: Set
  ansible.builtin.set_fact:
    there: "{{ [1, 2] | map('string') | join('-') }}"
- name: Fail
  ansible.builtin.fail:
    msg: "{{ there }} {{ undefined_thing | default('no') }}"
  ignore_errors: true
- name: Plugin of the role, called as one of Ansible's
  assert:
    that: false
- name: Undefined
  ansible.builtin.debug:
    msg: "{{ undefined_thing }}"
"""
_ASSERT = """
from ansible.plugins.action import ActionBase
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        return {"changed": False, "mine": True}
"""


def test_a_role_gives_the_same_events_and_files(playbooks: Warm, tmp_path: Path) -> None:
    role = make_role(tmp_path / "roles/one", _ROLE)
    (role / "tasks/more.yml").write_text("- name: Item\n  ansible.builtin.debug:\n    var: item\n")
    (role / "action_plugins").mkdir()
    (role / "action_plugins/assert.py").write_text(_ASSERT)
    before = (playbooks.servers(), _temporary(playbooks))
    stock = run_role(playbooks, tmp_path / "run", role, WARM_RUNNER="off")
    warm = run_role(playbooks, tmp_path / "run", role)
    assert warm.code == stock.code == 2
    assert warm.events == stock.events
    assert warm.output == stock.output
    assert warm.files == stock.files
    results = warm.results()
    assert results["Say"]["msg"] == "example /nowhere {{ 1 }}"
    assert results["Plugin of the role, called as one of Ansible's"]["mine"] is True
    assert (playbooks.servers(), _temporary(playbooks)) == before  # one of each server's own


def _temporary(playbooks: Warm) -> set[Path]:
    return set((playbooks.home.parent / ".ansible/tmp").glob("ansible-local-*"))


_ASKED = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: >-
          {{ ansible_check_mode }} {{ ansible_verbosity }} {{ ansible_run_tags }} {{ ansible_limit | default('-') }}
          {{ given | default('-') }} {{ ansible_forks }} {{ ansible_inventory_sources }} {{ playbook_dir }}
          {{ lookup('config', 'DEFAULT_ROLES_PATH') }} {{ lookup('config', 'DEFAULT_STDOUT_CALLBACK') }}
    - ansible.builtin.assert:
        that: "{{ passes | default(true) }}"
"""


def test_options_of_one_run_are_not_those_of_the_next(playbooks: Warm, tmp_path: Path) -> None:
    (tmp_path / "asked.yml").write_text(_ASKED)
    (tmp_path / "hosts").write_text("localhost ansible_connection=local\n")
    plain = ["ansible-playbook", "-i", str(tmp_path / "hosts"), str(tmp_path / "asked.yml")]
    special = [*plain, "--check", "-v", "--tags", "all", "-e", "given=this", "-e", "passes=false", "-f", "3"]
    playbooks.warm_up(*plain)
    stock = {
        name: playbooks.run(*argv, env={"WARM_RUNNER": "off", "ANSIBLE_ROLES_PATH": "/one"}, cwd=tmp_path)
        for name, argv in (("plain", plain), ("special", special))
    }
    for name, argv in (("special", special), ("plain", plain), ("special", special)):
        warm = playbooks.run(*argv, env={"ANSIBLE_ROLES_PATH": "/one"}, cwd=tmp_path)
        assert (warm.returncode, warm.stdout, warm.stderr) == (
            stock[name].returncode,
            stock[name].stdout,
            stock[name].stderr,
        )
    assert "/two" in playbooks.run(*plain, env={"ANSIBLE_ROLES_PATH": "/two"}, cwd=tmp_path).stdout


@pytest.mark.parametrize("options", [["--version"], ["--nonsense"], ["nowhere.yml"], ["--list-tasks", "asked.yml"]])
def test_failures_have_the_same_result(playbooks: Warm, tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "asked.yml").write_text(_ASKED)
    argv = ["ansible-playbook", *options]
    warm = playbooks.run(*argv, cwd=tmp_path)
    stock = playbooks.run(*argv, env={"WARM_RUNNER": "off"}, cwd=tmp_path)
    assert (warm.returncode, warm.stdout, warm.stderr) == (stock.returncode, stock.stdout, stock.stderr)


def test_a_run_that_is_cancelled_leaves_nothing(playbooks: Warm, tmp_path: Path) -> None:
    role = make_role(tmp_path / "roles/slow", "- ansible.builtin.command: sleep 77\n")
    servers = playbooks.servers()
    (tmp_path / "run/env").mkdir(parents=True)
    (tmp_path / "run/env/settings").write_text('{"pexpect_timeout": 1}')
    argv = ["run", str(tmp_path / "run"), "--role", "slow", "--roles-path", str(role.parent), "--hosts", "localhost"]
    with playbooks.start("ansible-runner", *argv, "-i", "7", "--role-skip-facts") as client:
        wait_for(_sleepers)
        client.terminate()
        client.communicate(timeout=20)
    assert client.returncode == 254
    wait_for(lambda: not _sleepers())
    assert playbooks.servers() == servers


def _sleepers() -> list[Path]:
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if _words(path) == [b"sleep", b"77", b""]]


def _words(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\0")
    except OSError:
        return []
