"""Label and field selectors, the forms kubectl and client libraries send."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Predicate = Callable[[dict[str, Any]], bool]

_SET = re.compile(r"^(?P<key>\S+)\s+(?P<op>in|notin)\s+\((?P<values>[^)]*)\)$")
_SPLIT = re.compile(r",(?![^(]*\))")


def label_predicate(selector: str) -> Predicate:
    """True for objects whose labels match every requirement."""
    tests = [_label_test(part.strip()) for part in _SPLIT.split(selector) if part.strip()]
    return lambda obj: all(test(obj.get("metadata", {}).get("labels") or {}) for test in tests)


def _label_test(part: str) -> Predicate:
    matched = _SET.match(part)
    if matched:
        key, wanted = matched["key"], {value.strip() for value in matched["values"].split(",")}
        if matched["op"] == "in":
            return lambda labels: labels.get(key) in wanted
        return lambda labels: labels.get(key) not in wanted
    if "!=" in part:
        key, value = (side.strip() for side in part.split("!=", 1))
        return lambda labels: labels.get(key) != value
    if "=" in part:
        key, value = (side.strip() for side in part.replace("==", "=").split("=", 1))
        return lambda labels: labels.get(key) == value
    if part.startswith("!"):
        return lambda labels: part[1:].strip() not in labels
    return lambda labels: part in labels


def field_predicate(selector: str) -> Predicate:
    """True for objects whose fields (dotted paths) equal, or with `!=` differ from, the given values."""
    tests: list[tuple[list[str], str, bool]] = []
    for part in filter(None, selector.split(",")):
        equal = "!=" not in part
        path, value = re.split(r"!=|==|=", part, maxsplit=1)
        tests.append((path.strip().split("."), value.strip(), equal))
    return lambda obj: all((_field(obj, path) == value) is equal for path, value, equal in tests)


def _field(obj: Any, path: list[str]) -> str:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return "" if obj is None else str(obj)
