from __future__ import annotations

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase

from . import crd

# The API server forbids to say anything about it.
UNDESCRIBED = {"metadata"}


def test_every_field_has_a_description() -> None:
    bare = [f.path for f in crd.fields(crd.root()) if "description" not in f.schema and f.path not in UNDESCRIBED]
    assert not bare


def test_every_rule_has_a_message_of_one_line() -> None:
    for path, rule in crd.rules():
        assert len(rule.get("message", "")) > 20, f"{path}: {rule['rule']}"
        assert "\n" not in rule["message"], path


def test_unknown_fields_are_refused() -> None:
    assert "x-kubernetes-preserve-unknown-fields" not in str(crd.definition())
    for field in crd.fields(crd.root()):
        if field.schema.get("type") == "object" and field.path not in UNDESCRIBED:
            assert "properties" in field.schema or "additionalProperties" in field.schema, field.path


def test_every_field_is_bounded_so_that_rules_stay_cheap() -> None:
    for field in crd.fields(crd.part("spec")):
        match field.schema.get("type"):
            case "string":
                assert "maxLength" in field.schema or "enum" in field.schema, field.path
            case "array":
                assert "maxItems" in field.schema, field.path
                assert "x-kubernetes-list-type" in field.schema, field.path
            case "object" if "additionalProperties" in field.schema:
                assert "maxProperties" in field.schema, field.path


def test_no_rule_matches_a_key_against_a_pattern() -> None:
    for path, rule in crd.rules():
        assert "k.matches(" not in rule["rule"], path


def test_defaults_conform_to_the_schema() -> None:
    for field in crd.fields(crd.part("spec")):
        if "default" in field.schema:
            assert list(crd.problems(field.schema["default"], field.schema, field.path)) == []


def test_default_of_an_object_has_the_defaults_of_its_fields() -> None:
    # Rules run on an object's own default before its fields' defaults are filled in, so it must have them itself.
    for name in ("storage", "deletion", "tls", "pod"):
        schema = crd.part("spec", name)
        own = {key: below["default"] for key, below in schema["properties"].items() if "default" in below}
        assert schema["default"] == own


def test_names_and_subresources_are_stable() -> None:
    spec = crd.definition()["spec"]
    assert spec["group"] == "etcdops.dev"
    assert spec["scope"] == "Namespaced"
    assert spec["names"]["plural"] == "etcdclusters"
    assert spec["names"]["shortNames"] == ["etcd"]
    assert spec["names"]["categories"] == ["etcdops"]
    assert crd.definition()["metadata"]["name"] == "etcdclusters.etcdops.dev"
    assert crd.version()["name"] == "v1beta1"
    assert crd.version()["subresources"]["scale"] == {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }


def test_columns_show_fields_that_exist() -> None:
    columns = {column["name"]: column["jsonPath"] for column in crd.version()["additionalPrinterColumns"]}
    assert list(columns) == ["Size", "Ready", "Version", "Leader", "Status", "Age", "Backup", "Message"]
    paths = {f".{field.path}" for field in crd.fields(crd.root())} | {".metadata.creationTimestamp"}
    assert set(columns.values()) <= paths


def test_phases_are_explained() -> None:
    description = crd.part("status", "phase")["description"]
    assert [phase for phase in Phase if phase not in description] == []
