"""Modules that are run without starting a process give the same results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .plays import Outcome, make_role, run_role
from .warm import Warm, wait_for

_TRY = '''#!/usr/bin/python
"""Does what `code` says."""
import os, signal, sys, time, warnings, subprocess, locale
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.warnings import warn

def main():
    module = AnsibleModule(
        argument_spec={
            "code": {"type": "str", "default": "pass"},
            "secret": {"type": "str", "no_log": True},
            "number": {"type": "int"},
        },
        supports_check_mode=True,
    )
    result = {"changed": False}
    exec(module.params["code"])
    module.exit_json(**result)

if __name__ == "__main__":
    main()
'''
_NEVER_EXITS = "#!/usr/bin/python\nfrom ansible.module_utils.basic import AnsibleModule\n"
_SAYS_NOTHING = _NEVER_EXITS + "import sys\nsys.exit(0)\n"
_SHELL = """#!/bin/sh
# WANT_JSON
echo '{"changed": false, "shell": true}'
"""
_OLD = """#!/usr/bin/python
print('{"changed": false, "old": true}')
"""
_COLLECTED = """#!/usr/bin/python
import sys
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.some.thing.plugins.module_utils import absolute
from ..module_utils.relative import name

def main():
    module = AnsibleModule(argument_spec={"given": {"type": "str"}})
    module.exit_json(absolute=absolute.NAME, relative=name(), given=module.params["given"], package=__package__)

main()
"""
_SURROUNDINGS = """
result.update(
    cwd=os.getcwd(), umask=os.umask(0), argv=len(sys.argv), stdin=sys.stdin.read(), tty=sys.stdout.isatty(),
    fds=len(os.listdir('/proc/self/fd')), locale=locale.setlocale(locale.LC_ALL), executable=sys.executable,
    name=__name__, ignored=[s for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN],
    tmpdir=module._remote_tmp, version=module.ansible_version, module_name=module._name, verbosity=module._verbosity,
    group=os.getpgrp() == os.getpid(), leader=os.getsid(0) == os.getpid(), encoding=sys.stdout.encoding,
    **{'env ' + name: value for name, value in os.environ.items()})
"""
_WHERE = "result['here'] = 'warm_runner.process' in sys.modules"


def _try(code: str = "pass", **keywords: Any) -> dict[str, Any]:
    return {"some.thing.tried": {"code": code}, **keywords}


_CASES: dict[str, dict[str, Any]] = {
    "ok": {"some.thing.tried": {"number": 3}},
    "changed": _try("result['changed'] = True"),
    "failed": _try("module.fail_json(msg='no', what=[1])"),
    "wrong argument": {"some.thing.tried": {"nonsense": 1}},
    "exit without json": _try("sys.exit(0)"),
    "hard exit": _try("os._exit(3)"),
    "junk before json": _try("print('junk'); print('more', file=sys.stderr)"),
    "much": _try("result['text'] = 'ü' * 300000"),
    "bytes": _try(r"os.write(1, b'\xff\xfe')"),
    "secret argument": {"some.thing.tried": {"secret": "pa55word", "code": "result['it'] = module.params['secret']"}},
    "secret task": _try(no_log=True),
    "check mode": _try("result['check'] = module.check_mode", check_mode=True, diff=True),
    "environment": _try("result['one'] = os.environ['ONE']", environment={"ONE": "{{ 1 }}"}),
    "python's environment": _try("result['b'] = sys.flags.optimize", environment={"PYTHONOPTIMIZE": "1"}),
    "warnings": _try("module.warn('careful'); warn('again'); module.deprecate('old', '9')"),
    "no warnings any more": _try(),
    "defaults": {"some.thing.tried": None, "module_defaults": {"some.thing.tried": {"number": 5}}},
    "loop": _try("import json; json.mark = result['mark'] = getattr(json, 'mark', 0) + 1", loop=[1, 2]),
    "surroundings": _try(_SURROUNDINGS),
    "template": _try("result['text'] = '{' + '{ 1 }}'"),
    "exit handlers": _try("open(module.tmpdir + '/x', 'w').close(); result['made'] = True"),
    "collected": {"some.thing.collected": {"given": "{{ size }}"}},
    "never exits": {"some.thing.never_exits": None},
    "says nothing": {"some.thing.says_nothing": None},
    "of the role": {"of_the_role": {"number": 6}},
    "of ansible": {"ansible.builtin.stat": {"path": "/nowhere"}},
    "in a shell": {"some.thing.in_shell": None},
    "old": {"some.thing.old": None},
    "async": {"some.thing.tried": None, "async": 30, "poll": 1},
}
# Stock has these in other words: its traceback leads through the packed module, and its shell says "Killed".
_ROUGHLY = {"crash": _try("1 / 0"), "killed": _try("os.kill(os.getpid(), 9)")}


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collections")
    plugins = {
        "modules/tried.py": _TRY,
        "modules/collected.py": _COLLECTED,
        "modules/never_exits.py": _NEVER_EXITS,
        "modules/says_nothing.py": _SAYS_NOTHING,
        "modules/in_shell": _SHELL,
        "modules/old.py": _OLD,
        "module_utils/absolute.py": "NAME = __name__\n",
        "module_utils/relative.py": "def name():\n    return __name__\n",
    }
    _write(folder / "ansible_collections/some/thing/plugins", plugins)
    return folder


def _tasks(cases: dict[str, dict[str, Any]]) -> str:
    return json.dumps([{"name": name, "ignore_errors": True, **task} for name, task in cases.items()])


def _both(playbooks: Warm, folder: Path, collections: Path, role: Path) -> tuple[Outcome, Outcome]:
    env = {"ANSIBLE_COLLECTIONS_PATH": str(collections)}
    stock = run_role(playbooks, folder / "run", role, WARM_RUNNER="off", **env)
    return run_role(playbooks, folder / "run", role, **env), stock


def test_results_are_the_same(playbooks: Warm, tmp_path: Path, collections: Path) -> None:
    role = make_role(tmp_path / "roles/cases", _tasks(_CASES | _ROUGHLY | {"where": _try(_WHERE)}))
    _write(role, {"library/of_the_role.py": _TRY})
    warm, stock = _both(playbooks, tmp_path, collections, role)
    results, expected = warm.results(), stock.results()
    assert set(results) == set(expected) == {*_CASES, *_ROUGHLY, "where"}
    for name in _CASES:
        assert _comparable(results[name]) == _comparable(expected[name]), name
    for name in _ROUGHLY:
        keys = ("failed", "changed", "msg", "rc", "module_stdout")
        assert [results[name].get(key) for key in keys] == [expected[name].get(key) for key in keys], name
        assert set(results[name]) == set(expected[name]), name
    assert results["crash"]["exception"].startswith("Traceback")
    assert "ZeroDivisionError" in results["crash"]["exception"]
    assert (results["where"]["here"], expected["where"]["here"]) == (True, False)
    assert results["of the role"]["invocation"]["module_args"]["number"] == 6


def _comparable(result: Any) -> Any:
    """Without what differs between two stock runs as well."""
    if isinstance(result, dict):
        changing = ("ansible_job_id", "results_file", "env WARM_RUNNER")
        return {key: _comparable(value) for key, value in result.items() if key not in changing}
    if isinstance(result, list):
        return [_comparable(value) for value in result]
    return result


_PROCESS = """
import multiprocessing
play = multiprocessing.parent_process()
result['process'] = 'play' if play is None else 'worker' if play.pid == os.getppid() else 'own'
"""
_DISTURB = """
os.environ['LEFT'] = 'over'; os.chdir('/'); sys.argv.append('x'); sys.path.clear(); sys.stdout = sys.stderr = None
os.close(1); locale.setlocale(locale.LC_ALL, 'C.UTF-8')
"""


@pytest.mark.parametrize(
    "trusted", ["ansible_collections.some.thing.plugins.modules", "some.thing.tried,some.thing.collected"]
)
def test_a_trusted_module_is_run_in_the_play(playbooks: Warm, tmp_path: Path, collections: Path, trusted: str) -> None:
    """With the same results, except for what it sees of its process."""
    special = {"hard exit", "surroundings", "loop", "async"}
    more = {
        "where": _try(_PROCESS),
        "where, by a short name": {"tried": _try(_PROCESS)["some.thing.tried"], "collections": ["some.thing"]},
        "where a loop is": _try(_PROCESS, loop=[1]),
        "where a limit is": _try(_PROCESS, timeout=20),
        "disturbs": _try(_DISTURB),
    }
    cases = {name: task for name, task in _CASES.items() if name not in special} | more
    role = make_role(tmp_path / "roles/trusted", _tasks(cases))
    _write(role, {"library/of_the_role.py": _TRY})
    env = {"ANSIBLE_COLLECTIONS_PATH": str(collections), "WARM_RUNNER_TRUSTED": trusted}
    stock = run_role(playbooks, tmp_path / "run", role, **env, WARM_RUNNER="off")
    before = playbooks.sockets()
    run_role(playbooks, tmp_path / "run", role, **env)
    wait_for(lambda: len(playbooks.sockets() - before) == 2)
    warm = run_role(playbooks, tmp_path / "run", role, **env)
    results, expected = warm.results(), stock.results()
    assert set(results) == set(expected) == set(cases)
    for name in cases.keys() - more.keys():
        assert _comparable(results[name]) == _comparable(expected[name]), name
    assert results["where"]["process"] == "play"
    assert results["where, by a short name"]["process"] == ("worker" if "modules" in trusted else "own")
    assert results["where a limit is"]["process"] == "own"
    assert results["where a loop is"]["results"][0]["process"] == "own"
    assert set(results["disturbs"]) == set(expected["disturbs"])
    assert (warm.code, warm.files) == (stock.code, stock.files)


def test_the_timeout_of_a_task_ends_its_module(playbooks: Warm, tmp_path: Path, collections: Path) -> None:
    pids = tmp_path / "pids"
    slow = _try(f"open('{pids}', 'w').write(str(os.getpid())); time.sleep(60)", timeout=1)
    role = make_role(tmp_path / "roles/slow", _tasks({"too slow": slow, "still well": _try(_WHERE)}))
    warm = run_role(playbooks, tmp_path / "run", role, ANSIBLE_COLLECTIONS_PATH=str(collections))
    assert "timed out" in str(warm.results()["too slow"]["msg"]) or "timedout" in warm.results()["too slow"]
    assert warm.results()["still well"]["here"] is True
    assert not Path(f"/proc/{pids.read_text()}").exists()


def test_module_utils_of_a_role_are_found(playbooks: Warm, tmp_path: Path, collections: Path) -> None:
    tasks = {"with module_utils of the role": {"own_utils": None}, "the usual way": _try(_WHERE)}
    role = make_role(tmp_path / "roles/own", _tasks(tasks))
    source = _NEVER_EXITS + "from ansible.module_utils.own import NAME\nAnsibleModule({}).exit_json(name=NAME)\n"
    _write(role, {"library/own_utils.py": source, "module_utils/own.py": "NAME = 'own'\n"})
    warm = run_role(playbooks, tmp_path / "run", role, ANSIBLE_COLLECTIONS_PATH=str(collections))
    assert warm.results()["with module_utils of the role"]["name"] == "own"
    assert warm.results()["the usual way"]["here"] is False


def test_all_modules_of_a_package_are_preloaded(playbooks: Warm, tmp_path: Path, collections: Path) -> None:
    package = "ansible_collections.some.thing.plugins.module_utils"
    env = {"ANSIBLE_COLLECTIONS_PATH": str(collections), "WARM_RUNNER_PRELOAD": package}
    task = _try(f"result['loaded'] = sorted(name for name in sys.modules if name.startswith('{package}.'))")
    role = make_role(tmp_path / "roles/all", _tasks({"loaded": task}))
    before = playbooks.sockets()
    run_role(playbooks, tmp_path / "run", role, **env)
    wait_for(lambda: len(playbooks.sockets() - before) == 2)
    found = run_role(playbooks, tmp_path / "run", role, **env).results()["loaded"]["loaded"]
    assert found == [f"{package}.absolute", f"{package}.relative"]


def test_named_modules_are_preloaded(playbooks: Warm, tmp_path: Path, collections: Path) -> None:
    names = ["ansible_collections.some.thing.plugins.modules.tried", "ansible_collections.some.thing.nowhere"]
    names.append("ansible_collections.some.thing.plugins.module_utils.absolute")
    env = {"ANSIBLE_COLLECTIONS_PATH": str(collections), "WARM_RUNNER_PRELOAD": ",".join(names)}
    task = _try(f"result['loaded'] = '{names[-1]}' in sys.modules")
    role = make_role(tmp_path / "roles/loaded", _tasks({"loaded": task}))
    before = playbooks.sockets()
    cold = run_role(playbooks, tmp_path / "run", role, **env)
    assert cold.results()["loaded"]["loaded"] is False
    wait_for(lambda: len(playbooks.sockets() - before) == 2)
    assert run_role(playbooks, tmp_path / "run", role, **env).results()["loaded"]["loaded"] is True
    assert "some.thing.nowhere" in "".join(path.read_text() for path in playbooks.home.glob("*.log"))
