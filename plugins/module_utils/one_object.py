"""What the modules have in common that look at one object of ours, in a namespace and of a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .kube import KubeError


def run(work: Callable[[str, str, bool], dict[str, Any]]) -> None:
    """Do the work of a module (namespace, name, whether to write) and end it with what that returns."""
    module = AnsibleModule(
        argument_spec={"namespace": {"type": "str", "required": True}, "name": {"type": "str", "required": True}},
        supports_check_mode=True,
    )
    try:
        result = work(module.params["namespace"], module.params["name"], not module.check_mode)
    except KubeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


def planned(changed: bool, plan: Any, *names: str) -> dict[str, Any]:
    """What every plan is returned with, and what else it has under these names."""
    found = {name: getattr(plan, name) for name in names}
    return {
        "changed": changed,
        "step": str(plan.step),
        "phase": str(plan.phase),
        "message": plan.message,
        "requeue": f"{plan.requeue}s",
        **{name: list(value) if isinstance(value, tuple) else value for name, value in found.items()},
    }
