"""Field ownership: which leaf of an object belongs to which manager, and merging by server-side apply.

A path is a tuple of `f:name` and `k:{...}` steps as in managedFields. Lists of objects with a known key merge
by that key; every other list is one atomic value.
"""

from __future__ import annotations

import copy
import json
from typing import Any

Path = tuple[str, ...]

LIST_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "imagePullSecrets": ("name",),
    "conditions": ("type",),
    "ownerReferences": ("uid",),
}
"""Field name -> key fields. Container ports and Service ports have different keys, see `_keys`."""

UNOWNED: frozenset[Path] = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "deletionTimestamp",
                "managedFields",
                "selfLink",
            )
        ),
    }
)


def _keys(name: str, items: list[Any]) -> tuple[str, ...] | None:
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    if name == "ports":
        key = "containerPort" if "containerPort" in items[0] else "port"
        return (key,) if all(key in item for item in items) else None
    keys = LIST_KEYS.get(name)
    return keys if keys and all(key in item for item in items for key in keys) else None


def _step(item: dict[str, Any], keys: tuple[str, ...]) -> str:
    return "k:" + json.dumps({key: item[key] for key in keys}, separators=(",", ":"))


def leaves(obj: dict[str, Any]) -> dict[Path, Any]:
    """Every owned leaf with its value; items of keyed lists also have a `.` leaf for existing."""
    found: dict[Path, Any] = {}
    _walk(obj, (), "", found)
    return {
        path: value for path, value in found.items() if path[:2] not in UNOWNED and path[:1] not in UNOWNED
    }


def _walk(value: Any, path: Path, name: str, found: dict[Path, Any]) -> None:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            _walk(inner, (*path, f"f:{key}"), key, found)
        return
    keys = _keys(name, value) if isinstance(value, list) else None
    if keys is None:
        found[path] = value
        return
    for item in value:
        at = (*path, _step(item, keys))
        found[(*at, ".")] = True
        _walk(item, at, "", found)


def merge(live: Any, patch: Any, name: str = "") -> Any:
    """`patch` over `live`: maps and keyed lists merge, anything else is replaced."""
    if isinstance(live, dict) and isinstance(patch, dict):
        merged = dict(live)
        for key, value in patch.items():
            merged[key] = merge(live.get(key), value, key)
        return merged
    keys = _keys(name, patch) if isinstance(patch, list) else None
    if keys and isinstance(live, list) and (not live or _keys(name, live) == keys):
        by_step = {_step(item, keys): item for item in live}
        ours = [merge(by_step.pop(_step(item, keys), None), item) for item in patch]
        return ours + list(by_step.values())
    return copy.deepcopy(patch)


def prune(obj: dict[str, Any], path: Path) -> None:
    """Remove the leaf at `path`, and maps and lists left empty by it."""
    _prune(obj, path, "")


def _prune(value: Any, path: Path, name: str) -> bool:
    """True when `value` is to be removed from its parent."""
    if not path:
        return True
    head, rest = path[0], path[1:]
    if head.startswith("f:") and isinstance(value, dict) and head[2:] in value:
        if _prune(value[head[2:]], rest, head[2:]):
            del value[head[2:]]
        return not value
    if head.startswith("k:") and isinstance(value, list):
        keys = tuple(json.loads(head[2:]))
        for item in value:
            if isinstance(item, dict) and all(key in item for key in keys) and _step(item, keys) == head:
                if rest == (".",) or _prune(item, rest, ""):
                    value.remove(item)
                return not value
    return False


def to_fields_v1(paths: set[Path]) -> dict[str, Any]:
    """Paths as a managedFields `fieldsV1` tree."""
    tree: dict[str, Any] = {}
    for path in sorted(paths):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    return tree


def from_fields_v1(tree: dict[str, Any], at: Path = ()) -> set[Path]:
    """The paths of a `fieldsV1` tree."""
    found: set[Path] = set()
    for step, inner in tree.items():
        path = (*at, step)
        found |= from_fields_v1(inner, path) if inner else {path}
    return found
