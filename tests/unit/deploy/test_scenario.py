from __future__ import annotations

from typing import Any

from . import crd


def _cases(name: str) -> list[dict[str, Any]]:
    return [case for cases in crd.load(crd.CASES / f"{name}.yml").values() for case in cases]


def test_scenario_tries_every_rule() -> None:
    said = [case["message"] for name in ("rejected", "changes") for case in _cases(name) if "message" in case]
    untried = [
        (path, rule["message"])
        for path, rule in crd.rules()
        # A message that is made up on the spot begins like the plain one.
        if not any(part in rule["message"] or rule["message"][:24] in part for part in said)
    ]
    assert not untried


def test_scenario_tries_every_option() -> None:
    tried = {name for case in _cases("accepted") for name in case["spec"].get("options", {}).get("extra", {})}
    extra = crd.part("spec", "options", "extra")["x-kubernetes-validations"]
    own_fields, allowed = (crd.names_in(rule["rule"]) for rule in extra[:2])
    assert tried == allowed - own_fields


def test_case_names_are_unique() -> None:
    for name in ("accepted", "rejected"):
        names = [case["name"] for case in _cases(name)]
        assert len(names) == len(set(names))
