"""Tells the runner when to reconcile again.

ansible-operator looks for a task whose action is `requeue_after` and for `period` in its result. An action plugin,
because it needs no process of its own.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):  # type: ignore[misc]
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        del tmp, task_vars
        return {"changed": False, "period": str(self._task.args["period"])}
