"""From pydantic models to structural OpenAPI schemas, the form the API server demands of custom resources.

Structural means: no references, no unions but int-or-string, a type on every node, and defaults that are
valid by themselves. Pydantic's JSON schema has references, nullable unions and titles, so it is rewritten
here, once, for the CRDs, the field reference and the check for unknown fields alike.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from noctaya_api.v1alpha1.base import KubeModel
from noctaya_api.v1alpha1.scalars import INT_OR_STRING

Schema = dict[str, Any]
Path = tuple[str | int, ...]

# A larger number is no integer to the API server. It doesn't check the format int32, so those bounds stay.
_INT64_BOUNDS: Final = {"minimum": -(2**63), "maximum": 2**63 - 1}


def structural_schema(model: type[KubeModel]) -> Schema:
    """Structural schema of a model, as the API server would accept it in a CRD."""
    raw = model.model_json_schema(by_alias=True, mode="validation")
    return _rewrite(raw, raw.get("$defs", {}))


def unknown_fields(schema: Schema, value: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of fields the schema doesn't know, which the API server would drop, or refuse under strict
    validation."""
    if isinstance(value, dict) and "properties" in schema:
        for name, item in value.items():
            if name in schema["properties"]:
                yield from unknown_fields(schema["properties"][name], item, (*path, name))
            else:
                yield (*path, name)
    elif isinstance(value, dict) and "additionalProperties" in schema:
        for name, item in value.items():
            yield from unknown_fields(schema["additionalProperties"], item, (*path, name))
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from unknown_fields(schema["items"], item, (*path, index))


def schema_at(schema: Schema, path: Path) -> Schema:
    """The node of a schema that describes the value at a path. Raises KeyError when there is none."""
    for step in path:
        if isinstance(step, int):
            schema = schema["items"]
        elif "properties" in schema:
            schema = schema["properties"][step]
        else:
            schema = schema["additionalProperties"]
    return schema


def _rewrite(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    merged = _inline(node, definitions)
    for unwanted in ("title", "$defs"):
        merged.pop(unwanted, None)
    if merged.get("default", ...) is None:
        del merged["default"]
    if "const" in merged:
        merged["enum"] = [merged.pop("const")]
    if "properties" in merged:
        merged["properties"] = {
            name: _rewrite(item, definitions) for name, item in merged["properties"].items()
        }
        # Nested defaults fill the rest; spelling them out twice would let the two drift apart.
        if isinstance(merged.get("default"), dict):
            merged["default"] = {}
    for inner in ("items", "additionalProperties"):
        if isinstance(merged.get(inner), dict):
            merged[inner] = _rewrite(merged[inner], definitions)
    return _without_implied_bounds(merged)


def _inline(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """Replace references and nullable unions by what they stand for; the node's own keys win."""
    own = dict(node)
    if "$ref" in own:
        target = definitions[own.pop("$ref").removeprefix("#/$defs/")]
        return {**_inline(target, definitions), **own}
    if "anyOf" in own and INT_OR_STRING not in own:
        branches = [branch for branch in own.pop("anyOf") if branch.get("type") != "null"]
        if len(branches) != 1:
            raise TypeError(f"a structural schema has no unions: {branches}")
        return {**_inline(branches[0], definitions), **own}
    return own


def _without_implied_bounds(node: Schema) -> Schema:
    """Leave out the bounds that every integer keeps."""
    return {key: value for key, value in node.items() if _INT64_BOUNDS.get(key) != value}
