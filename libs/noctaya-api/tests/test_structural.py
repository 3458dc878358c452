"""The generated schemas obey the rules of structural schemas, which the API server checks when a CRD is "
"created."""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from noctaya_api.crd import RESOURCES, Resource, render_crd
from noctaya_api.structural import schema_at, structural_schema, unknown_fields
from noctaya_api.v1alpha1.base import KubeModel

ALLOWED = {
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
}


def schema_of(resource: Resource) -> dict[str, Any]:
    schema: dict[str, Any] = render_crd(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{path}[]")


@pytest.fixture(params=RESOURCES, ids=lambda resource: resource.kind)
def schema(request: pytest.FixtureRequest) -> dict[str, Any]:
    return schema_of(request.param)


def test_every_node_has_a_type_or_is_int_or_string(schema: dict[str, Any]) -> None:
    for path, node in nodes(schema):
        if node.get("x-kubernetes-int-or-string"):
            assert "type" not in node, path
            assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
        else:
            assert isinstance(node.get("type"), str), path
            assert "anyOf" not in node, path


def test_only_keywords_that_a_structural_schema_may_have_are_used(schema: dict[str, Any]) -> None:
    for path, node in nodes(schema):
        assert set(node) <= ALLOWED, path
        assert not {"properties", "additionalProperties"} <= set(node), path


def test_every_field_has_a_description_of_its_own(schema: dict[str, Any]) -> None:
    for path, node in nodes(schema):
        if path != ".metadata" and not path.endswith("[]"):
            assert node.get("description", "").endswith("."), path


def test_required_fields_exist(schema: dict[str, Any]) -> None:
    for path, node in nodes(schema):
        assert set(node.get("required", [])) <= set(node.get("properties", {})), path


def test_every_default_is_valid_by_itself(schema: dict[str, Any]) -> None:
    for path, node in nodes(schema):
        if "default" in node:
            assert jsonschema_rs.Draft202012Validator(node).is_valid(node["default"]), path
            assert node["default"] is not None, path


def test_a_required_field_is_never_inside_a_defaulted_object_that_lacks_it(schema: dict[str, Any]) -> None:
    for path, node in nodes(schema):
        if node.get("default") == {}:
            for name in node.get("required", []):
                assert "default" in node["properties"][name], f"{path}.{name}"


def test_conditions_are_a_map_by_type(schema: dict[str, Any]) -> None:
    conditions = schema_at(schema, ("status", "conditions"))
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert sorted(conditions["items"]["required"]) == [
        "lastTransitionTime",
        "message",
        "reason",
        "status",
        "type",
    ]


def test_references_are_atomic() -> None:
    service, runtime = (schema_of(resource) for resource in RESOURCES)
    sources = ("spec", "container", "env", 0, "valueFrom")
    atomic = [
        schema_at(service, ("spec", "model", "source", "secretRef")),
        schema_at(service, ("spec", "imagePullSecrets", 0)),
        *(schema_at(runtime, (*sources, name)) for name in schema_at(runtime, sources)["properties"]),
    ]
    assert len(atomic) == 7
    assert {node.get("x-kubernetes-map-type") for node in atomic} == {"atomic"}


def test_parents_of_defaults_default_to_the_empty_object() -> None:
    service = schema_of(RESOURCES[0])
    for path in (("resources",), ("scaling",), ("cache",), ("endpoint",), ("endpoint", "coldStart")):
        assert schema_at(service, ("spec", *path))["default"] == {}
    for path in (("endpoint", "resources"), ("endpoint", "authentication")):
        assert "default" not in schema_at(service, ("spec", *path))


def test_every_rule_has_a_message(schema: dict[str, Any]) -> None:
    for path, node in nodes(schema):
        for rule in node.get("x-kubernetes-validations", []):
            assert set(rule) - {"optionalOldSelf"} == {"rule", "message"}, path


def test_unknown_fields_are_found_at_any_depth() -> None:
    service, runtime = (schema_of(resource) for resource in RESOURCES)
    assert list(unknown_fields(service, {"spec": {"scaling": {"max": 1, "mix": 2}}, "spce": {}})) == [
        ("spec", "scaling", "mix"),
        ("spce",),
    ]
    value = {
        "spec": {
            "container": {"env": [{"name": "A"}, {"nam": "B"}]},
            "accelerator": {"nodeSelector": {"x": "y"}},
        }
    }
    assert list(unknown_fields(runtime, value)) == [("spec", "container", "env", 1, "nam")]


def test_a_model_with_a_union_has_no_structural_schema() -> None:
    class Odd(KubeModel):
        either: int | str

    with pytest.raises(TypeError, match="no unions"):
        structural_schema(Odd)
