"""`values.schema.json` of a chart, from its values: every value described, every other key refused.

Helm merges a parent chart's `global` into every subchart, so it may hold what we don't know.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from noctaya_charts.definitions import DEFINITIONS, Schema
from noctaya_charts.values import Value, ValuesFault

DRAFT: Final = "http://json-schema.org/draft-07/schema#"
GLOBAL: Final = "global"


def render_schema(chart: str, values: Sequence[Value]) -> str:
    """The file's text. Raises ValuesFault for a value whose type nothing says."""
    root = {
        "$schema": DRAFT,
        "title": f"Values of the chart {chart}",
        "type": "object",
        "properties": {value.path[-1]: _schema(value) for value in values},
        "additionalProperties": False,
    }
    return json.dumps(root, indent=2, ensure_ascii=False) + "\n"


def _schema(value: Value) -> Schema:
    described: Schema = {"description": value.description} if value.description else {}
    if value.children:
        return described | {
            "type": "object",
            "properties": {child.path[-1]: _schema(child) for child in value.children},
            "additionalProperties": value.path == (GLOBAL,),
        }
    return described | _type(value) | {"default": value.default}


def _type(value: Value) -> Schema:
    if isinstance(value.schema, str):
        if value.schema not in DEFINITIONS:
            raise ValuesFault(f"{value.name}: there is no definition {value.schema!r}")
        return DEFINITIONS[value.schema]
    given = dict(value.schema or {})
    if "type" in given or "anyOf" in given:
        return given
    return {"type": _type_of(value)} | given


def _type_of(value: Value) -> str:
    kinds: dict[type[Any], str] = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
    }
    kind = kinds.get(type(value.default))
    if kind is None or (kind == "array" and not value.schema):
        raise ValuesFault(f"{value.name}: its default {value.default!r} says no type; add `@schema`")
    return kind
