"""The API server's part in admission, over the generated CRDs: prune, default, validate, evaluate CEL."""

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import celpy
import celpy.celtypes as cel
import jsonschema_rs
import pytest
import yaml
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError
from noctaya_api.crd import RESOURCES, render_crd
from noctaya_api.duration import parse_duration_ns
from noctaya_api.quantity import parse_quantity

VERSION = "serving.noctaya.io/v1alpha1"
SMALLEST: dict[str, dict[str, Any]] = {
    "LLMService": {
        "apiVersion": VERSION,
        "kind": "LLMService",
        "metadata": {"name": "chat"},
        "spec": {"model": {"source": {"uri": "hf://org/model"}}, "runtime": {"name": "vllm"}},
    },
    "InferenceRuntime": {
        "apiVersion": VERSION,
        "kind": "InferenceRuntime",
        "metadata": {"name": "vllm"},
        "spec": {
            "vendor": "nvidia",
            "container": {"image": "vllm", "port": {}},
            "accelerator": {"resourceName": "nvidia.com/gpu"},
        },
    },
}


@dataclass(frozen=True)
class Case:
    """One row of admission_cases.yaml."""

    kind: str
    name: str
    object: dict[str, Any]
    accepted: bool
    at: str


def _cases() -> Iterator[Case]:
    table = yaml.safe_load(Path(__file__).with_name("admission_cases.yaml").read_text(encoding="utf-8"))
    for kind, rows in table.items():
        for row in rows:
            changed = copy.deepcopy(SMALLEST[kind])
            for path, value in row["set"].items():
                *parents, last = path.split(".")
                target = changed
                for parent in parents:
                    target = target[parent]
                target[last] = value
            yield Case(kind, row["name"], changed, row["accepted"], row.get("at", ""))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", list(_cases()), ids=lambda case: f"{case.kind}: {case.name}")


@pytest.fixture(scope="session")
def all_cases() -> list[Case]:
    return list(_cases())


@pytest.fixture(scope="session")
def smallest() -> Callable[[str], dict[str, Any]]:
    return lambda kind: copy.deepcopy(SMALLEST[kind])


@dataclass(frozen=True)
class Verdict:
    """What became of an object: as stored, and the fields with what is wrong with them."""

    stored: dict[str, Any]
    errors: list[tuple[str, str]]


class FakeAdmission:
    def __init__(self) -> None:
        self.schemas = {
            resource.kind: render_crd(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            for resource in RESOURCES
        }
        self.validators = {
            kind: jsonschema_rs.Draft202012Validator(schema) for kind, schema in self.schemas.items()
        }
        self.programs: dict[str, celpy.Runner] = {}

    def admit(self, submitted: dict[str, Any], *, update: bool = False) -> Verdict:
        """What becomes of an object that is created, or that exists and is updated."""
        schema = self.schemas[submitted["kind"]]
        stored = prune_and_default(schema, submitted)
        errors = []
        for error in self.validators[submitted["kind"]].iter_errors(stored):
            path = list(error.instance_path)
            if error.kind.name == "required":
                path.append(error.kind.as_dict()["property"])
            errors.append((dotted(path), error.message))
        if not errors:
            errors = list(self._broken_rules(schema, stored, [], update=update))
        return Verdict(stored, errors)

    def evaluate(self, rule: str, value: Any, *, update: bool) -> bool:
        """Value of a CEL rule; an evaluation error counts as false, as it does in the API server."""
        stored_before = cel.BoolType(update)
        if rule not in self.programs:
            environment = celpy.Environment()
            self.programs[rule] = environment.program(environment.compile(rule), functions=FUNCTIONS)
        try:
            return bool(self.programs[rule].evaluate({"self": json_to_cel(value), "oldSelf": stored_before}))
        except CELEvalError:
            return False

    def messages(self) -> Iterator[str]:
        """Messages of all rules of all schemas."""
        pending: list[Any] = list(self.schemas.values())
        while pending:
            node = pending.pop()
            for rule in node.get("x-kubernetes-validations", []):
                yield rule["message"]
            pending += node.get("properties", {}).values()
            pending += [node[key] for key in ("items", "additionalProperties") if key in node]

    def _broken_rules(
        self, schema: dict[str, Any], value: Any, path: list[Any], *, update: bool
    ) -> Iterator[tuple[str, str]]:
        for rule in schema.get("x-kubernetes-validations", []):
            if not self.evaluate(rule["rule"], value, update=update):
                yield dotted(path), rule["message"]
        for key, item in _children(value):
            inner = _inner(schema, key)
            if inner is not None:
                yield from self._broken_rules(inner, item, [*path, key], update=update)


def prune_and_default(schema: dict[str, Any], value: Any) -> Any:
    """What the API server does before validation: unknown fields and nulls go, defaults come."""
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        result = {
            key: prune_and_default(known[key], item)
            for key, item in value.items()
            if key in known and item is not None
        }
        for key, inner in known.items():
            if key not in result and "default" in inner:
                result[key] = prune_and_default(inner, copy.deepcopy(inner["default"]))
        return result
    if isinstance(value, dict) and "additionalProperties" in schema:
        inner = schema["additionalProperties"]
        return {key: prune_and_default(inner, item) for key, item in value.items() if item is not None}
    if isinstance(value, list) and "items" in schema:
        return [prune_and_default(schema["items"], item) for item in value]
    return value


def dotted(path: list[Any]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _children(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _inner(schema: dict[str, Any], key: Any) -> dict[str, Any] | None:
    if isinstance(key, int):
        items: dict[str, Any] | None = schema.get("items")
        return items
    named: dict[str, dict[str, Any]] = schema.get("properties", {})
    return named.get(key, schema.get("additionalProperties"))


# The API server's extension functions. Durations and timestamps are whole nanoseconds here, because the
# CEL library of the tests cuts them to microseconds.


def _duration(text: Any) -> cel.IntType:
    return cel.IntType(parse_duration_ns(str(text)))


def _is_quantity(text: Any) -> cel.BoolType:
    try:
        parse_quantity(str(text))
    except ValueError:
        return cel.BoolType(False)
    return cel.BoolType(True)


def _quantity(text: Any) -> cel.DoubleType:
    return cel.DoubleType(float(parse_quantity(str(text))))


FUNCTIONS: dict[str, Any] = {
    "duration": _duration,
    "timestamp": lambda seconds: cel.IntType(int(seconds) * 1_000_000_000),
    "getSeconds": lambda nanoseconds: cel.IntType(int(nanoseconds) // 1_000_000_000),
    "isQuantity": _is_quantity,
    "quantity": _quantity,
    "isLessThan": lambda left, right: cel.BoolType(left < right),
    "hasValue": lambda old: old,
    "isGreaterThan": lambda left, right: cel.BoolType(left > right),
    "matches": lambda text, pattern: cel.BoolType(re.search(str(pattern), str(text)) is not None),
}


@pytest.fixture(scope="session")
def admission() -> FakeAdmission:
    return FakeAdmission()
