"""The CRDs and samples of backups, schedules and restores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from . import crd

KINDS = {"EtcdBackup": "etcdb", "EtcdBackupSchedule": "etcdbs", "EtcdRestore": "etcdr"}
COLUMNS = {
    "EtcdBackup": ["Cluster", "Status", "Revision", "Size", "Destination", "Age", "Message"],
    "EtcdBackupSchedule": ["Cluster", "Schedule", "Status", "Last", "Next", "Kept", "Age", "Message"],
    "EtcdRestore": ["Cluster", "Status", "Revision", "Source", "Age", "Message"],
}
OPEN = "spec.newCluster.spec"  # an EtcdCluster's, which the API server checks when it is made


def _definition(kind: str) -> crd.Schema:
    found: crd.Schema = crd.load(crd.ROOT / f"deploy/crd/{kind.lower()}s.yaml")
    return found


def _schema(kind: str) -> crd.Schema:
    found: crd.Schema = _definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_field_has_a_description_and_is_bounded(kind: str) -> None:
    for field in crd.fields(_schema(kind)):
        if field.path == "metadata":
            continue
        assert "description" in field.schema, field.path
        match field.schema.get("type"):
            case "string":
                bounded = {"maxLength", "enum", "format"} & set(field.schema)
                assert bounded or field.path in ("apiVersion", "kind"), field.path
            case "array":
                assert "maxItems" in field.schema, field.path
            case "object":
                assert "properties" in field.schema or field.path == OPEN, field.path


def test_every_rule_has_a_message_of_one_line(kind: str) -> None:
    rules = [rule for field in crd.fields(_schema(kind)) for rule in field.schema.get("x-kubernetes-validations", [])]
    assert rules
    for rule in rules:
        assert len(rule["message"]) > 20
        assert "\n" not in rule["message"]


def test_names_and_columns_are_stable(kind: str) -> None:
    spec = _definition(kind)["spec"]
    assert spec["names"]["kind"] == kind
    assert spec["names"]["shortNames"] == [KINDS[kind]]
    assert spec["names"]["categories"] == ["etcdops"]
    columns = {column["name"]: column["jsonPath"] for column in spec["versions"][0]["additionalPrinterColumns"]}
    assert list(columns) == COLUMNS[kind]
    paths = {f".{field.path}" for field in crd.fields(_schema(kind))} | {".metadata.creationTimestamp"}
    assert set(columns.values()) <= paths


def test_defaults_conform_to_the_schema(kind: str) -> None:
    for field in crd.fields(_schema(kind)["properties"]["spec"]):
        if "default" in field.schema:
            assert list(crd.problems(field.schema["default"], field.schema, field.path)) == []


def _samples() -> Iterator[Any]:
    for path in sorted(crd.SAMPLES.glob("*.yaml")):
        yield from (each for each in yaml.safe_load_all(path.read_text()) if each["kind"] in KINDS)


@pytest.mark.parametrize("sample", list(_samples()), ids=lambda sample: str(sample["metadata"]["name"]))
def test_sample_conforms_to_the_crd(sample: dict[str, Any]) -> None:
    schema = _schema(sample["kind"])["properties"]["spec"]
    spec = sample["spec"]
    if new := spec.get("newCluster"):
        assert list(crd.problems(new.pop("spec"), crd.part("spec"))) == []
        schema["properties"]["newCluster"]["required"] = ["name"]
    assert list(crd.problems(spec, schema)) == []


def test_every_kind_has_a_sample() -> None:
    assert {sample["kind"] for sample in _samples()} == set(KINDS)
