"""The documentation of every module matches its options and results."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest
import yaml
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.etcdops.etcd.plugins import modules
from ansible_collections.etcdops.etcd.plugins.doc_fragments import etcd, kube, snapshot
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan

from sandbox import layout

from ..etcds import Cluster
from ..running import succeed

MODULES = sorted(path.stem for path in (layout.REPOSITORY / "plugins/modules").glob("*.py"))
FRAGMENTS = {
    "etcdops.etcd.etcd": etcd.ModuleDocFragment.DOCUMENTATION,
    "etcdops.etcd.kube": kube.ModuleDocFragment.DOCUMENTATION,
    "etcdops.etcd.kube.etcdcluster": kube.ModuleDocFragment.ETCDCLUSTER,
    "etcdops.etcd.kube.plan": kube.ModuleDocFragment.PLAN,
    "etcdops.etcd.snapshot": snapshot.ModuleDocFragment.DOCUMENTATION,
    "etcdops.etcd.snapshot.fetch": snapshot.ModuleDocFragment.FETCH,
}
_FACTS = ("type", "elements", "default", "choices", "required")


class _CapturedError(Exception):
    """Carries the argument spec out of a module."""


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{modules.__name__}.{name}")


def _argument_spec(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    def capture(_: AnsibleModule, **settings: Any) -> None:
        raise _CapturedError(settings["argument_spec"])

    monkeypatch.setattr(AnsibleModule, "__init__", capture)
    with pytest.raises(_CapturedError) as captured:
        module.main()
    spec: dict[str, Any] = captured.value.args[0]
    return spec


def _facts(options: dict[str, Any], below: str) -> dict[str, Any]:
    """What is compared of options and of the options below them."""
    return {
        name: {fact: option.get(fact) or None for fact in _FACTS} | {"below": _facts(option.get(below) or {}, below)}
        for name, option in options.items()
    }


@pytest.mark.parametrize("name", MODULES)
def test_options_are_documented(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = _module(name)
    documentation = yaml.safe_load(module.DOCUMENTATION)
    assert documentation["module"] == name
    documented = documentation.get("options", {})
    for fragment in documentation["extends_documentation_fragment"]:
        documented |= yaml.safe_load(FRAGMENTS[fragment]).get("options", {})
    spec = _argument_spec(module, monkeypatch)
    assert _facts(documented, "suboptions") == _facts(spec, "options")


@pytest.mark.parametrize("name", MODULES)
def test_examples_use_the_module_and_its_options(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = _module(name)
    spec = _argument_spec(module, monkeypatch)
    key = f"etcdops.etcd.{name}"
    used = [task[key] or {} for task in yaml.safe_load(module.EXAMPLES) if key in task]
    assert used
    for options in used:
        assert set(options) <= set(spec)
        assert {option for option, facts in spec.items() if facts.get("required")} <= set(options)


def test_results_of_modules_for_etcd_are_documented(one: Cluster) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("etcd_cluster_info", {}),
        ("etcd_leader", {"also": {"name": "m0"}}),
        ("etcd_member", {"also": {"name": "m0"}}),
        ("etcd_upgrade", {"version": one.version}),
    ]
    for name, arguments in cases:
        module = _module(name)
        documented = yaml.safe_load(module.RETURN)
        result = succeed(module, endpoints=one.endpoints, **arguments)
        extra = {"changed", "invocation", "diff", "code"}
        assert set(documented) - extra == set(result) - extra
        inner = "leader" if name == "etcd_leader" else "members"
        found = result[inner] if name == "etcd_leader" else result[inner][0]
        assert set(documented[inner]["contains"]) == set(found)


@pytest.mark.parametrize("name", [name for name in MODULES if name.endswith("_plan")])
def test_results_of_planning_modules_are_documented(name: str) -> None:
    documented = yaml.safe_load(_module(name).RETURN)
    assert set(documented) == set(Plan(Phase.RUNNING, Reason.ALL_HEALTHY, "").as_result())
