"""The field reference `docs/crd.md`, written from the same schemas that the API server enforces."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from noctaya_api.structural import Schema
from noctaya_api.v1alpha1.scalars import INT_OR_STRING, VALIDATIONS

_HEAD: Final = """\
# Fields of the custom resources

Generated from the models by `python -m noctaya_api.crd`; change the models, not this file.

Group `serving.noctaya.io`, version `v1alpha1`. A field marked *required* must be given when the
object around it is given. Durations are written as in Go: `300ms`, `10s`, `2m`, `1h30m`. Quantities are
written as in Kubernetes: `500m`, `16Gi`. A null counts as absent. Unknown fields are refused by `kubectl` and
by `noctaya validate`.
"""
_INT32_BOUNDS: Final = (-(2**31), 2**31 - 1)
_BOUNDS: Final = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minLength", "at least {} character(s)"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} item(s)"),
)


def render_reference(schemas: Mapping[str, Schema]) -> str:
    """Markdown with one section a kind and one table for each part of its schema."""
    parts = [_HEAD]
    for kind, schema in schemas.items():
        parts.append(f"## {kind}\n\n{schema['description']}\n")
        rules = [_escape(rule["message"]) for rule in schema.get(VALIDATIONS, [])]
        if rules:
            parts.append("\n".join(f"- {rule}" for rule in rules) + "\n")
        for part in ("spec", "status"):
            rows = list(_rows(part, schema["properties"][part], required=part in schema["required"]))
            table = ["| Path | Type | Default | Rules | Meaning |", "|---|---|---|---|---|", *rows]
            parts.append(f"### {kind}.{part}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def _rows(path: str, node: Schema, *, required: bool) -> Iterator[str]:
    rules = ["required"] if required and "default" not in node else []
    cells = [
        f"`{path}`",
        _type(node),
        _default(node),
        "; ".join(rules + _rules(node)),
        node.get("description", ""),
    ]
    yield "| " + " | ".join(_escape(cell) for cell in cells) + " |"
    inner, prefix = node, path
    if node.get("type") == "array":
        inner, prefix = node["items"], f"{path}[]"
    for name, child in inner.get("properties", {}).items():
        yield from _rows(f"{prefix}.{name}", child, required=name in inner.get("required", []))


def _type(node: Schema) -> str:
    if node.get(INT_OR_STRING):
        return "quantity" if "pattern" in node else "integer or string"
    if node["type"] == "array":
        return f"list of {_type(node['items'])}"
    if isinstance(node.get("additionalProperties"), dict):
        return f"map of {_type(node['additionalProperties'])}"
    return str(node.get("format", node["type"]))


def _default(node: Schema) -> str:
    if "default" not in node:
        return ""
    value: Any = node["default"]
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return '`""`' if value == "" else f"`{value}`"


def _rules(node: Schema) -> list[str]:
    rules = [text.format(node[key]) for key, text in _BOUNDS if node.get(key) not in {None, *_INT32_BOUNDS}]
    items = node["items"] if node.get("type") == "array" else node
    if "enum" in items:
        rules.append("one of " + ", ".join(f"`{value}`" for value in items["enum"]))
    if "pattern" in node and not node.get(INT_OR_STRING):
        rules.append(f"matches `{node['pattern']}`")
    rules += [rule["message"] for rule in node.get(VALIDATIONS, [])]
    if items is not node:
        rules += [f"each: {rule['message']}" for rule in items.get(VALIDATIONS, [])]
    return rules


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
