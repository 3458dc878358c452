"""What an object looks like after defaults, compared as a whole."""

from collections.abc import Callable
from typing import Any

import pytest
from noctaya_api.v1alpha1 import InferenceRuntime, LLMService
from pydantic import ValidationError

Smallest = Callable[[str], dict[str, Any]]

# contracts 1.1, "fully defaulted minimal object", and the off switch for heartbeats that v0.5 adds
DEFAULTED_SPEC = {
    "model": {"source": {"uri": "hf://org/model"}},
    "runtime": {"name": "vllm"},
    "cache": {"strategy": "NodeLocalPVC"},
    "endpoint": {
        "coldStart": {"heartbeatInterval": "10s", "mode": "keepalive", "heartbeats": True, "progress": False},
        "accessLog": "cold",
        "maxQueue": 100,
        "openAICompatible": True,
    },
    "resources": {"accelerators": 1},
    "scaling": {
        "activationTimeout": "5m",
        "drainTimeout": "2m",
        "max": 1,
        "metric": "queueDepth",
        "min": 0,
        "scaleDownStabilization": "5m",
        "target": 10,
    },
}


def test_c1_the_smallest_service_gets_every_default(smallest: Smallest) -> None:
    service = LLMService.model_validate(smallest("LLMService"))
    assert service.manifest() == {**smallest("LLMService"), "spec": DEFAULTED_SPEC}


def test_c1_defaults_reach_into_parents_that_are_given_in_part(smallest: Smallest) -> None:
    given = smallest("LLMService")
    given["spec"]["endpoint"] = {"coldStart": {"mode": "reject"}}
    stored = LLMService.model_validate(given).manifest()
    assert stored["spec"]["endpoint"] == {
        "coldStart": {"heartbeatInterval": "10s", "mode": "reject", "heartbeats": True, "progress": False},
        "accessLog": "cold",
        "maxQueue": 100,
        "openAICompatible": True,
    }


def test_c1_explicit_nulls_get_defaults(smallest: Smallest) -> None:
    given = smallest("LLMService")
    given["spec"] |= {"scaling": {"min": None, "max": None}, "cache": None, "endpoint": {"coldStart": None}}
    given["spec"]["model"]["catalogRef"] = None
    assert LLMService.model_validate(given).manifest()["spec"] == DEFAULTED_SPEC


def test_the_smallest_runtime_gets_every_default(smallest: Smallest) -> None:
    runtime = InferenceRuntime.model_validate(smallest("InferenceRuntime"))
    assert runtime.manifest()["spec"] == {
        "family": "vllm",
        "vendor": "nvidia",
        "priority": 0,
        "container": {"image": "vllm", "port": {"name": "http", "containerPort": 8000}},
        "accelerator": {"resourceName": "nvidia.com/gpu"},
    }


def test_unknown_fields_are_pruned(smallest: Smallest) -> None:
    given = smallest("LLMService")
    given["spec"]["sclaing"] = {"max": 3}
    assert LLMService.model_validate(given).manifest()["spec"] == DEFAULTED_SPEC


def test_a_written_object_reads_back_as_the_same_object(smallest: Smallest) -> None:
    service = LLMService.model_validate(smallest("LLMService"))
    assert LLMService.model_validate(service.manifest()) == service


def test_objects_are_immutable(smallest: Smallest) -> None:
    service = LLMService.model_validate(smallest("LLMService"))
    with pytest.raises(ValidationError):
        service.spec.scaling.max = 5  # type: ignore[misc]


def test_durations_and_quantities_carry_their_value(smallest: Smallest) -> None:
    given = smallest("LLMService")
    given["spec"]["resources"] = {"cpu": 2, "memory": "1.5Gi"}
    spec = LLMService.model_validate(given).spec
    assert spec.scaling.activation_timeout == "5m"
    assert spec.scaling.activation_timeout.seconds == 300.0
    assert spec.scaling.activation_timeout.nanoseconds == 300_000_000_000
    assert spec.resources.cpu is not None
    assert spec.resources.cpu.amount == 2
    assert spec.resources.memory is not None
    assert spec.resources.memory.amount == 3 * 2**29


def test_a_service_without_a_namespace_is_in_default(smallest: Smallest) -> None:
    given = smallest("LLMService")
    assert LLMService.model_validate(given).namespace == "default"
    given["metadata"]["namespace"] = "models"
    assert LLMService.model_validate(given).namespace == "models"


def test_a_status_is_read_and_written_whole(smallest: Smallest) -> None:
    status = {
        "phase": "Loading",
        "resolvedRuntime": "vllm",
        "replicas": 1,
        "endpointURL": "http://chat.models.svc/v1",
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "ModelLoading",
                "message": "pod chat-0 is loading",
                "lastTransitionTime": "2026-11-30T07:00:00Z",
                "observedGeneration": 3,
            }
        ],
    }
    service = LLMService.model_validate({**smallest("LLMService"), "status": status})
    assert service.manifest()["status"] == status


def test_replicas_are_left_out_of_a_status_when_there_are_none(smallest: Smallest) -> None:
    service = LLMService.model_validate({**smallest("LLMService"), "status": {"phase": "ScaledToZero"}})
    assert service.manifest()["status"] == {"phase": "ScaledToZero"}


@pytest.mark.parametrize(
    "change",
    [
        {"type": ""},
        {"status": "true"},
        {"reason": "not one word"},
        {"message": None},
        {"lastTransitionTime": "yesterday"},
        {"lastTransitionTime": "2026-13-30T07:00:00Z"},
        {"observedGeneration": -1},
    ],
)
def test_a_malformed_condition_is_refused(change: dict[str, Any], smallest: Smallest) -> None:
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Available",
        "message": "",
        "lastTransitionTime": "2026-11-30T07:00:00Z",
    }
    LLMService.model_validate({**smallest("LLMService"), "status": {"conditions": [condition]}})
    with pytest.raises(ValidationError):
        broken = {"conditions": [{**condition, **change}]}
        LLMService.model_validate({**smallest("LLMService"), "status": broken})
