"""Runs a Python module in a fork of this process, or in this process itself, instead of in a new Python.

With this folder in ANSIBLE_ACTION_PLUGINS, Ansible uses this plugin instead of its own `normal`. It is the same plugin
with one difference: a module that would be packed, sent through a shell to the same Python and unpacked there is run
from its file. In all other cases Ansible's own code runs it.
"""

from __future__ import annotations

import atexit
import functools
import json
import multiprocessing
import os
import selectors
import signal
import sys
import weakref
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from multiprocessing import util
from types import CodeType, ModuleType
from typing import Any, NoReturn

import ansible.plugins.action
from ansible import constants
from ansible.executor import module_common
from ansible.module_utils import basic
from ansible.module_utils.common import warnings
from ansible.module_utils.common.text.converters import to_text
from ansible.parsing.ajson import AnsibleJSONEncoder
from ansible.plugins.loader import module_utils_loader

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
try:
    from warm_runner import client, process
finally:
    del sys.path[0]


# The message of the wrapper into which Ansible packs a module.
_NO_EXIT = '{"msg": "New-style module did not handle its own exit", "failed": true}'


def _stock() -> Any:
    """Ansible's own plugin; we have the name under which it would be imported."""
    path = os.path.join(os.path.dirname(ansible.plugins.action.__file__), "normal.py")
    module = ModuleType("warm_runner_stock_normal")
    SourceFileLoader(module.__name__, path).exec_module(module)
    return module.ActionModule


@dataclass(frozen=True)
class Call:
    """A module to be run here. Ansible passes it on in place of the packed module."""

    path: str
    package: str
    code: CodeType
    arguments: bytes
    environment: dict[str, str]
    cwd: str
    trusted: bool


class ActionModule(_stock()):  # type: ignore[misc]
    def _configure_module(self, module_name: str, module_args: Any, task_vars: Any) -> Any:
        try:
            call = self._call(module_name, module_args, task_vars)
        except Exception:  # Ansible's own code reports the error
            call = None
        if call is None:
            return super()._configure_module(module_name, module_args, task_vars)
        return "new", f"#!{sys.executable}", call, call.path

    def _low_level_execute_command(self, cmd: Any, sudoable: bool = True, in_data: Any = None, **options: Any) -> Any:
        if not isinstance(in_data, Call):
            return super()._low_level_execute_command(cmd, sudoable=sudoable, in_data=in_data, **options)
        code, output, errors = (_run_here if in_data.trusted else _run)(in_data)
        out, err = (to_text(text, errors="surrogate_then_replace") for text in (output, errors))
        return {
            "rc": code,
            "stdout": out,
            "stdout_lines": out.splitlines(),
            "stderr": err,
            "stderr_lines": err.splitlines(),
        }

    def _call(self, module_name: str, module_args: Any, task_vars: Any) -> Call | None:
        """How to run the module here; None when Ansible's own code must run it."""
        if (
            os.environ.get("WARM_RUNNER") == "off"
            or "_ANSIBLE_COVERAGE_CONFIG" in os.environ
            or self._connection.transport != "local"
            or self._connection.become
            or self._task.async_val
            or self._task.delegate_to
            or not self._is_pipelining_enabled("new")
            or constants.config.get_config_value("PYTHON_MODULE_RLIMIT_NOFILE", variables=task_vars)
            or _other_module_utils()
        ):
            return None
        found = self._shared_loader_obj.module_loader.find_plugin_with_context(
            module_name, ".py", collection_list=self._task.collections
        )
        path = found.plugin_resolved_path
        with open(path, "rb") as file:
            source = file.read()
        code = compiled(source, path)
        if code is None:
            return None
        asked, options = module_common._extract_interpreter(source)
        shebang = module_common._get_shebang(asked or "/usr/bin/python", task_vars, self._templar, options)
        if shebang != (f"#!{sys.executable}", sys.executable):
            return None
        environment: dict[str, Any] = {}
        self._compute_environment_string(environment)
        if any(name.startswith(("PYTHON", "LANG", "LC_", "LD_")) for name in environment):
            return None  # they have an effect only when a process starts
        arguments = json.dumps({"ANSIBLE_MODULE_ARGS": module_args}, cls=AnsibleJSONEncoder, vault_to_text=True)
        try:
            name = module_common._get_ansible_module_fqn(path)
        except ValueError:  # in a role or a library folder
            name = f"ansible.modules.{module_name}"
        return Call(
            path,
            name.rpartition(".")[0],
            code,
            arguments.encode(),
            {key: str(value) for key, value in environment.items()},
            self._loader.get_basedir(),
            _needs_no_fork(name.rpartition(".")[0], self._task),
        )


@functools.cache
def compiled(source: bytes, path: str) -> CodeType | None:
    """The code of a module; None when Ansible runs this kind differently, or the module needs its packed form."""
    if (
        module_common._is_binary(source)
        or module_common.REPLACER in source
        or b"respawn_module" in source
        or not module_common.NEW_STYLE_PYTHON_MODULE_RE.search(source)
    ):
        return None
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        return SourceFileLoader("__main__", path).get_code("__main__")
    finally:
        sys.dont_write_bytecode = before


def _other_module_utils() -> bool:
    """Whether a packed module would find other module_utils than those that we import."""
    core = os.path.dirname(basic.__file__)
    return any(path != core and os.path.isdir(path) for path in module_utils_loader._get_paths(subdirs=False))


def _needs_no_fork(package: str, task: Any) -> bool:
    """Whether a module needs no fork: it is trusted, and this process does nothing else meanwhile."""
    busy = multiprocessing.parent_process() is None and multiprocessing.active_children()
    return package in client.names("TRUSTED") and not (busy or task.loop or task.until or task.timeout)


def _run_here(call: Call) -> tuple[int, bytes, bytes]:
    """Run it in this process: most of the time of a small module is memory that a fork copies."""
    with process.state_restored():
        process.start_as_script(call.path, call.environment, call.cwd)
        _expect_module(call)
        return process.run_here(call.code, call.path, call.package, _NO_EXIT)


def _run(call: Call) -> tuple[int, bytes, bytes]:
    """Run it in a fork: exit code (as a shell gives it), output and error output."""
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_module(call, out_end, err_end)
    os.close(out_end)
    os.close(err_end)
    try:
        received: dict[int, list[bytes]] = {out: [], err: []}
        with selectors.PollSelector() as selector:
            for fd in received:
                selector.register(fd, selectors.EVENT_READ)
            while selector.get_map():
                for ready, _ in selector.select():
                    data = os.read(ready.fd, 65536)
                    received[ready.fd].append(data)
                    if not data:
                        selector.unregister(ready.fd)
        _, status = os.waitpid(pid, 0)
        pid = 0
    finally:
        os.close(out)
        os.close(err)
        if pid:  # the task's timeout
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code, b"".join(received[out]), b"".join(received[err])


def _become_module(call: Call, out: int, err: int) -> NoReturn:
    """Give the fork the state of the process that the module would have had, and run it."""
    try:
        for number, fd in enumerate((os.open("/dev/null", os.O_RDONLY), out, err)):
            os.dup2(fd, number)
        os.closerange(3, 65536)
        process.default_signals()
        process.open_streams()
        # Exit handlers that belong to this process.
        atexit._clear()
        atexit.register(util._exit_function)  # type: ignore[attr-defined]
        weakref.finalize._registry.clear()  # type: ignore[attr-defined]
        weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
        process.start_as_script(call.path, call.environment, call.cwd)
        _expect_module(call)
        process.run(call.code, call.path, call.package, _NO_EXIT)
    finally:
        os._exit(1)


def _expect_module(call: Call) -> None:
    warnings._global_warnings.clear()
    warnings._global_deprecations.clear()
    basic._ANSIBLE_ARGS = call.arguments
