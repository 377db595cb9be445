"""The programs that have servers: what a server preloads, and what each fork must reset.

Code is preloaded, never run: so there is no state of an earlier run, only caches of what is on disk.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import os
import pkgutil
import secrets
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from . import client, shortcuts


@dataclass(frozen=True)
class Program:
    """`preload` is called once in the server, `reset` in each fork before the program's script is run."""

    preload: Callable[[], None]
    reset: Callable[[], None]


def _preload_runner() -> None:
    # Its import reads the environment and makes the name of a run: the fork must do that.
    importlib.import_module("ansible_runner.__main__")
    del sys.modules["ansible_runner.__main__"]

    from ptyprocess import PtyProcess  # type: ignore[import-untyped]

    shortcuts.take(shortcuts.close_terminals_at_once, PtyProcess)
    shortcuts.take(shortcuts.be_the_client)
    if events := sys.modules.get("ansible_runner_http.events"):
        shortcuts.take(shortcuts.send_events_over_one_connection, events)


def _reset_runner() -> None:
    pass


# Plugins that almost every play uses. A run loads others itself.
_PLUGINS = {
    "action": ("assert", "debug", "fail", "include_vars", "normal", "set_fact"),
    "cache": ("jsonfile", "memory"),
    "callback": ("default", "junit", "minimal", "oneline", "tree"),
    "inventory": ("auto", "host_list", "ini", "yaml"),
    "strategy": ("linear",),
    "vars": ("host_group_vars",),
}
_ALL_PLUGINS = ("become", "connection", "shell")  # of these kinds Ansible loads all, in each run
# Modules that Ansible, the standard library and most Ansible modules import only when they need them.
_LATE = (
    "_strptime",
    "ansible.modules",
    "ansible.playbook.handler_task_include",
    "encodings.idna",
    "multiprocessing.popen_fork",
)
_import_warnings: list[str] = []


def _preload_playbook() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as output:
        from ansible import constants
    _import_warnings.append(output.getvalue())
    if _settings(constants, os.getcwd()) != _settings(constants, "/"):
        sys.exit("Ansible's configuration depends on the working directory, so no server can hold it")

    import ansible.cli.playbook
    import ansible.executor.task_queue_manager  # noqa: F401
    from ansible.executor.process.worker import WorkerProcess
    from ansible.executor.task_executor import TaskExecutor
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins import loader
    from ansible.template import Templar

    for name in _LATE:
        importlib.import_module(name)
    warned = (list(constants.config.WARNINGS), list(constants.config.DEPRECATED))
    loader.init_plugin_loader()
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured")
    for kind, names in _PLUGINS.items():
        for name in names:
            getattr(loader, f"{kind}_loader").get(name, class_only=True)
    for kind in _ALL_PLUGINS:
        list(getattr(loader, f"{kind}_loader").all(class_only=True))
    loader.vars_loader._clear_caches()  # it keeps the order in which plugins were asked for
    Templar(DataLoader(), {"some": "value"}).template("{{ some | default('') is defined and lookup('env', 'HOME') }}")
    for name in client.names("PRELOAD"):
        _preload_named(name)
    constants.config.WARNINGS, constants.config.DEPRECATED = set(warned[0]), warned[1]
    _load_plugins_by_path(loader.PluginLoader)
    shortcuts.take(shortcuts.run_trusted_actions_here, WorkerProcess, TaskExecutor)


def _settings(constants: Any, cwd: str) -> list[object]:
    """All settings except the temporary directory, which is a new one each time."""
    before = os.getcwd()
    os.chdir(cwd)
    try:
        names = [name for name in constants.config.get_configuration_definitions() if name != "DEFAULT_LOCAL_TMP"]
        return [constants.config.get_config_value(name, variables=vars(constants)) for name in names]
    finally:
        os.chdir(before)


def _preload_named(name: str) -> None:
    """Load a Python module, or all modules of a package."""
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        print(f"WARM_RUNNER_PRELOAD: {error}", file=sys.stderr)
        return
    if hasattr(module, "__path__"):
        for found in pkgutil.iter_modules(module.__path__):
            _preload_named(f"{name}.{found.name}")
    else:
        _keep_code(module)


def _keep_code(module: ModuleType) -> None:
    """Compile an Ansible module now, so that action/normal.py finds its code."""
    plugin = sys.modules["ansible.plugins.action.normal"]
    if ".plugins.modules." in module.__name__ and hasattr(plugin, "compiled") and module.__file__:
        with open(module.__file__, "rb") as file:
            plugin.compiled(file.read(), module.__file__)


def _load_plugins_by_path(plugin_loader: Any) -> None:
    """Ansible reuses a loaded plugin of the same name; a preloaded one may come from another file."""
    stock_load = plugin_loader._load_module_source
    loaded = {name: module.__file__ for name, module in sys.modules.items() if name.startswith("ansible.plugins.")}

    def load(self: Any, name: str, path: str) -> Any:
        full_name = f"{self.package}.{name}"
        if loaded.pop(full_name, path) != path:
            sys.modules.pop(full_name, None)
        return stock_load(self, name, path)

    plugin_loader._load_module_source = load


def _reset_playbook() -> None:
    import ansible.cli
    import ansible.utils.color
    import ansible.utils.vars
    from ansible import constants
    from ansible.config.manager import cleanup_tmp_file
    from ansible.utils.display import Display

    sys.stderr.writelines(_import_warnings)
    ansible.cli.check_blocking_io()
    atexit.unregister(cleanup_tmp_file)  # it would remove the server's directory
    for name in ("CACHE_PLUGIN_CONNECTION", "DEFAULT_LOCAL_TMP", "DEFAULT_ROLES_PATH"):
        constants.set_constant(name, constants.config.get_config_value(name, variables=vars(constants)))
    ansible.utils.vars.random_int = secrets.token_hex(4)
    importlib.reload(ansible.utils.color)  # it depends on stdout
    Display().__init__()  # so does this, and it remembers which warnings it has shown


PROGRAMS = {
    "ansible-playbook": Program(_preload_playbook, _reset_playbook),
    "ansible-runner": Program(_preload_runner, _reset_runner),
}
