"""The EtcdCluster's CRD, the samples and the scenario's cases, as values for tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "deploy/samples"
CASES = ROOT / "molecule/validation/vars"

Schema = dict[str, Any]


class _Loader(yaml.SafeLoader):
    """Reads Ansible's !unsafe too."""


def _text(loader: _Loader, node: yaml.Node) -> Any:
    assert isinstance(node, yaml.ScalarNode)
    return loader.construct_scalar(node)


_Loader.add_constructor("!unsafe", _text)


@dataclass(frozen=True)
class Field:
    """One place in a schema: `a.b`, `a[]` for a list's items, `a{}` for a map's values."""

    path: str
    schema: Schema


def load(path: Path) -> Any:
    return yaml.load(path.read_text(), _Loader)  # noqa: S506 - a SafeLoader


@cache
def definition() -> Schema:
    loaded: Schema = load(ROOT / "deploy/crd/etcdclusters.yaml")
    return loaded


def version() -> Schema:
    found: Schema = definition()["spec"]["versions"][0]
    return found


def root() -> Schema:
    found: Schema = version()["schema"]["openAPIV3Schema"]
    return found


def part(*names: str) -> Schema:
    """The schema of a field, by the names that lead to it."""
    schema = root()
    for name in names:
        schema = schema["properties"][name]
    return schema


def fields(schema: Schema, path: str = "") -> Iterator[Field]:
    """This schema and all below it."""
    yield Field(path, schema)
    for name, below in schema.get("properties", {}).items():
        yield from fields(below, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from fields(schema["additionalProperties"], f"{path}{{}}")


def rules() -> Iterator[tuple[str, Schema]]:
    """Every CEL rule, with the path of its schema."""
    for field in fields(root()):
        for rule in field.schema.get("x-kubernetes-validations", []):
            yield field.path, rule


def names_in(rule: str) -> set[str]:
    """The option names that a CEL rule quotes."""
    return set(re.findall(r"'([a-z][a-z0-9]*(?:-[a-z0-9]+)*)'", rule))


def problems(value: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """Where a value isn't what the schema's structure asks for; CEL is the API server's part."""
    if schema.get("x-kubernetes-int-or-string"):
        kinds: tuple[type, ...] = (int, str)
    else:
        kinds = {"object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "boolean": (bool,)}[
            schema["type"]
        ]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        yield f"{path}: {value!r} is no {schema.get('type', 'int or string')}"
    elif isinstance(value, dict):
        yield from _in_object(value, schema, path)
    elif isinstance(value, list):
        if len(value) > schema["maxItems"]:
            yield f"{path}: too many"
        for number, item in enumerate(value):
            yield from problems(item, schema["items"], f"{path}[{number}]")
    else:
        yield from _in_scalar(value, schema, path)


def _in_object(value: dict[str, Any], schema: Schema, path: str) -> Iterator[str]:
    for name in schema.get("required", []):
        if name not in value:
            yield f"{path}.{name}: missing"
    for name, below in value.items():
        known = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
        if known is None:
            yield f"{path}.{name}: unknown"
        else:
            yield from problems(below, known, f"{path}.{name}")


def _in_scalar(value: Any, schema: Schema, path: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{path}: {value!r} doesn't match {schema['pattern']}"
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            yield f"{path}: {value!r} is too short or too long"
    elif not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{path}: {value!r} is out of range"
