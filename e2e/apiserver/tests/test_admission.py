"""Every row of the table that the Python models are judged by, judged by the API server itself."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from noctaya_apiserver import ApiClient, Refused
from noctaya_apiserver.client import Object

TABLE = Path(__file__).parents[3] / "libs" / "noctaya-api" / "tests" / "v1alpha1" / "admission_cases.yaml"
MODELS = {"LLMService": LLMService, "InferenceRuntime": InferenceRuntime}
SMALLEST: dict[str, Object] = {
    "LLMService": {"model": {"source": {"uri": "hf://org/model"}}, "runtime": {"name": "vllm"}},
    "InferenceRuntime": {
        "vendor": "nvidia",
        "container": {"image": "vllm", "port": {}},
        "accelerator": {"resourceName": "nvidia.com/gpu"},
    },
}
NAMES = {"LLMService": "chat", "InferenceRuntime": "vllm"}


def smallest(kind: str) -> Object:
    return {
        "apiVersion": "serving.noctaya.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": NAMES[kind]},
        "spec": copy.deepcopy(SMALLEST[kind]),
    }


def rows() -> Iterator[Any]:
    for kind, cases in yaml.safe_load(TABLE.read_text()).items():
        for row in cases:
            yield pytest.param(kind, row, id=f"{kind}: {row['name']}")


def changed(kind: str, changes: dict[str, Any]) -> Object:
    obj = smallest(kind)
    for path, value in changes.items():
        *parents, last = path.split(".")
        target = obj
        for parent in parents:
            target = target[parent]
        target[last] = value
    return obj


@pytest.mark.parametrize(("kind", "row"), list(rows()))
def test_the_server_judges_as_the_models_do(api: ApiClient, kind: str, row: dict[str, Any]) -> None:
    submitted = changed(kind, row["set"])
    if row["accepted"]:
        stored = api.create(submitted, dryRun="All", fieldValidation="Strict")
        expected = MODELS[kind].model_validate(submitted).manifest()["spec"]
        assert spelled_alike(stored["spec"], expected) == expected
        return
    with pytest.raises(Refused) as refusal:
        api.create(submitted, dryRun="All", fieldValidation="Strict")
    assert (refusal.value.status, refusal.value.reason) == (422, "Invalid")
    # A rule of the whole object, on its name, has no field to name.
    assert (row["at"] or "<nil>") in refusal.value.fields


def spelled_alike(stored: Any, expected: Any) -> Any:
    """The stored value with whole numbers as text where the models keep quantities as text."""
    if isinstance(stored, dict):
        inner = expected if isinstance(expected, dict) else {}
        return {key: spelled_alike(value, inner.get(key)) for key, value in stored.items()}
    if isinstance(stored, int) and not isinstance(stored, bool) and isinstance(expected, str):
        return str(stored)
    return stored


def test_c1_the_smallest_service_gets_the_defaults_of_the_contract(api: ApiClient) -> None:
    stored = api.create(smallest("LLMService"), dryRun="All")
    assert stored["spec"] == {
        "model": {"source": {"uri": "hf://org/model"}},
        "runtime": {"name": "vllm"},
        "resources": {"accelerators": 1},
        "scaling": {
            "min": 0,
            "max": 1,
            "metric": "queueDepth",
            "target": 10,
            "activationTimeout": "5m",
            "scaleDownStabilization": "5m",
            "drainTimeout": "2m",
        },
        "cache": {"strategy": "NodeLocalPVC"},
        "endpoint": {
            "openAICompatible": True,
            "maxQueue": 100,
            "accessLog": "cold",
            "coldStart": {
                "mode": "keepalive",
                "heartbeatInterval": "10s",
                "heartbeats": True,
                "progress": False,
            },
        },
    }


def test_the_smallest_runtime_gets_the_defaults_of_the_contract(api: ApiClient) -> None:
    stored = api.create(smallest("InferenceRuntime"), dryRun="All")
    assert stored["spec"] == {
        "family": "vllm",
        "vendor": "nvidia",
        "priority": 0,
        "container": {"image": "vllm", "port": {"name": "http", "containerPort": 8000}},
        "accelerator": {"resourceName": "nvidia.com/gpu"},
    }


@pytest.mark.parametrize("path", ["spec.tipo", "spec.scaling.replicas", "spec.cache.sizes"])
def test_an_unknown_field_is_refused_by_name_under_strict_validation(api: ApiClient, path: str) -> None:
    parent, _, last = path.rpartition(".")
    value: Any = {last: 1} if parent == "spec" else {parent.split(".")[1]: {last: 1}}
    submitted = smallest("LLMService")
    submitted["spec"] |= value
    with pytest.raises(Refused, match=f'unknown field "{path}"'):
        api.create(submitted, dryRun="All", fieldValidation="Strict")


def test_an_unknown_field_is_dropped_without_strict_validation(api: ApiClient) -> None:
    submitted = smallest("LLMService")
    submitted["spec"]["tipo"] = 1
    stored = api.create(submitted, dryRun="All", fieldValidation="Ignore")
    assert "tipo" not in stored["spec"]


def test_a_field_given_twice_is_refused_under_strict_validation(api: ApiClient, namespace: str) -> None:
    path = f"/apis/serving.noctaya.io/v1alpha1/namespaces/{namespace}/llmservices"
    text = yaml.safe_dump(smallest("LLMService")) + "  imagePullSecrets: []\n  imagePullSecrets: []\n"
    with pytest.raises(Refused, match=r"duplicate|already set"):
        api.request("POST", path, text.encode(), content_type="application/yaml", fieldValidation="Strict")


def test_defaults_come_back_when_an_applied_field_is_given_up(api: ApiClient, namespace: str) -> None:
    obj = smallest("LLMService")
    obj["metadata"]["namespace"] = namespace
    given = {**obj, "spec": {**obj["spec"], "scaling": {"max": 5, "target": 2}}}
    assert api.apply(given)["spec"]["scaling"]["max"] == 5
    default = api.create(smallest("LLMService"), dryRun="All")
    assert api.apply(obj)["spec"] == default["spec"]


def test_an_object_stored_under_a_name_refused_today_can_still_get_a_status(api: ApiClient) -> None:
    """The rule on names asks new objects only; see test_malformed for the operator's part."""
    crd = api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/llmservices.serving.noctaya.io")
    rules = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
    assert all(rule.get("optionalOldSelf") for rule in rules)
