"""What the modules take is what their documentation says."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import yaml
from ansible_collections.etcdops.etcd.plugins.doc_fragments import etcd, kube, snapshot
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import module as shared
from ansible_collections.etcdops.etcd.plugins.modules import (
    etcd_cluster_info,
    etcd_leader,
    etcd_member,
    etcd_restore,
    etcd_snapshot,
    etcd_snapshot_info,
    etcd_upgrade,
    etcdcluster_downgrade,
    etcdcluster_member,
    etcdcluster_restart,
)

from ..etcds import Cluster
from ..running import succeed

MODULES = [
    etcd_cluster_info,
    etcd_leader,
    etcd_member,
    etcd_restore,
    etcd_snapshot,
    etcd_snapshot_info,
    etcd_upgrade,
    etcdcluster_downgrade,
    etcdcluster_member,
    etcdcluster_restart,
]
FRAGMENTS = {
    "etcdops.etcd.etcd": etcd.ModuleDocFragment.DOCUMENTATION,
    "etcdops.etcd.kube": kube.ModuleDocFragment.DOCUMENTATION,
    "etcdops.etcd.kube.etcdcluster": kube.ModuleDocFragment.ETCDCLUSTER,
    "etcdops.etcd.snapshot": snapshot.ModuleDocFragment.DOCUMENTATION,
    "etcdops.etcd.snapshot.fetch": snapshot.ModuleDocFragment.FETCH,
}


class _CapturedError(Exception):
    """Carries the argument spec out of a module."""


def _argument_spec(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    def capture(**settings: Any) -> None:
        raise _CapturedError(settings["argument_spec"])

    monkeypatch.setattr(shared, "AnsibleModule", capture)
    monkeypatch.setattr(module, "AnsibleModule", capture, raising=False)
    with pytest.raises(_CapturedError) as captured:
        module.main()
    spec: dict[str, Any] = captured.value.args[0]
    return spec


@pytest.mark.parametrize("module", MODULES)
def test_options_are_documented_as_they_are(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    documentation = yaml.safe_load(module.DOCUMENTATION)
    documented = documentation["options"]
    for fragment in documentation["extends_documentation_fragment"]:
        documented |= yaml.safe_load(FRAGMENTS[fragment]).get("options", {})
    spec = _argument_spec(module, monkeypatch)
    facts = ("type", "elements", "default", "choices")
    assert {name: {fact: option.get(fact) for fact in facts} for name, option in documented.items()} == {
        name: {fact: option.get(fact) for fact in facts} for name, option in spec.items()
    }


def test_results_are_documented_as_they_are(one: Cluster) -> None:
    cases: list[tuple[ModuleType, dict[str, Any]]] = [
        (etcd_cluster_info, {}),
        (etcd_leader, {"name": "m0"}),
        (etcd_member, {"name": "m0"}),
        (etcd_upgrade, {"version": one.version}),
    ]
    for module, arguments in cases:
        documented = yaml.safe_load(module.RETURN)
        result = succeed(module, endpoints=one.endpoints, **arguments)
        extra = {"changed", "invocation", "diff", "code"}
        assert set(documented) - extra == set(result) - extra
        inner = "leader" if module is etcd_leader else "members"
        found = result[inner] if module is etcd_leader else result[inner][0]
        assert set(documented[inner]["contains"]) == set(found)
