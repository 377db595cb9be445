"""Writes docs/api.md from the CRDs, which are the truth: python -m tools.api."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/api.md"
_KUBERNETES_OWN = ("affinity", "topologySpreadConstraints", "tolerations", "resources")  # explained by Kubernetes


def page() -> str:
    parts = ["# The API\n\n<!-- Made by `python -m tools.api` from deploy/crd/; a test keeps it true. -->"]
    for path in sorted((ROOT / "deploy/crd").glob("etcd*.yaml")):
        parts.append(_kind(yaml.safe_load(path.read_text())))
    return "\n\n".join(parts) + "\n"


def _kind(crd: dict[str, Any]) -> str:
    names, version = crd["spec"]["names"], crd["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    head = f"## {names['kind']}\n\n`{crd['spec']['group']}/{version['name']}`, short name `{names['shortNames'][0]}`."
    tables = []
    for part in ("spec", "status"):
        rows = "\n".join(_rows(schema["properties"][part], ""))
        tables.append(f"### {part}\n\n| field | type | default | |\n|---|---|---|---|\n{rows}")
    return "\n\n".join([head, _text(schema.get("description", "")), *tables])


def _rows(schema: dict[str, Any], prefix: str) -> Iterator[str]:
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        default = f"`{field['default']}`" if "default" in field else "required" if name in required else ""
        yield f"| `{prefix}{name}` | {_type(field)} | {default} | {_text(field.get('description', ''))} |"
        if name not in _KUBERNETES_OWN:
            yield from _rows(field.get("items", field), f"{prefix}{name}{'[]' if 'items' in field else ''}.")


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return " \\| ".join(f"`{value}`" for value in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if field.get("type") == "array":
        return f"list of {field['items'].get('type', 'object')}"
    if isinstance(field.get("additionalProperties"), dict):
        return "map"
    return str(field.get("type", "object"))


def _text(description: str) -> str:
    return " ".join(description.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
