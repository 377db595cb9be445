"""Runs a module as Ansible does, without Ansible: arguments in, JSON out, in this process."""

from __future__ import annotations

import contextlib
import io
import json
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils import basic

Result = dict[str, Any]


def run(module: ModuleType, *, check: bool = False, also: Result | None = None, **arguments: Any) -> Result:
    """What the module returns; a failure is a result too. `also`: arguments whose names mean something else here."""
    handed_over = {
        "ANSIBLE_MODULE_ARGS": {**arguments, **(also or {}), "_ansible_check_mode": check, "_ansible_diff": True}
    }
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(output):
        patch.setattr(basic, "_ANSIBLE_ARGS", json.dumps(handed_over).encode())
        patch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)  # asked for by ansible-core 2.19
        with pytest.raises(SystemExit) as ended:
            module.main()
    result: Result = json.loads(output.getvalue())
    assert ended.value.code == (1 if result.get("failed") else 0)
    return result


def succeed(module: ModuleType, *, check: bool = False, **arguments: Any) -> Result:
    result = run(module, check=check, **arguments)
    assert not result.get("failed"), result["msg"]
    return result


def fail(module: ModuleType, *, check: bool = False, **arguments: Any) -> str:
    """The message."""
    result = run(module, check=check, **arguments)
    assert result.get("failed"), result
    return str(result["msg"])
